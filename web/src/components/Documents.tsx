import { writeYaml } from '../kinds/yaml';

/** Objects as YAML, for `kubectl apply`. */
export default function Documents({
  documents,
  label,
}: {
  documents: readonly unknown[];
  label: string;
}) {
  return (
    // Scrollable text must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre tabIndex={0} aria-label={label}>
      {documents.map((one) => writeYaml(one)).join('---\n')}
    </pre>
  );
}
