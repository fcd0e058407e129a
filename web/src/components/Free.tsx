import { readYaml, writeYaml } from '../kinds/yaml';
import { TextField, type Field } from './fields';

/** A value without a fixed form, as YAML. */
export default function Free(field: Field) {
  const read = (text: string) => {
    const value = readYaml(text);
    const wanted =
      field.schema.type === 'array'
        ? Array.isArray(value)
        : typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!wanted)
      throw new Error(
        field.schema.type === 'array' ? 'Enter a list' : 'Enter YAML, for example replicas: 2',
      );
    return value;
  };
  return (
    <TextField
      field={field}
      hint="As YAML."
      write={(data) => writeYaml(data).trimEnd()}
      read={read}
    />
  );
}
