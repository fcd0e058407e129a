import { writeYaml } from '../kinds/yaml';
import { Copy } from './Copy';

/** Objects as YAML, for `kubectl apply`. */
export default function Documents({
  documents,
  label,
}: {
  documents: readonly unknown[];
  label: string;
}) {
  const text = documents.map((one) => writeYaml(one)).join('---\n');
  return (
    <div className="yaml">
      <Copy text={text} what="the YAML" />
      {/* Scrollable text must be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
    </div>
  );
}
