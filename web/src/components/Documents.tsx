import { writeYaml } from '../kinds/yaml';

/** Objects as YAML, as one would apply them. */
export default function Documents({
  documents,
  label,
}: {
  documents: readonly unknown[];
  label: string;
}) {
  return (
    // A text that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre tabIndex={0} aria-label={label}>
      {documents.map((one) => writeYaml(one)).join('---\n')}
    </pre>
  );
}
