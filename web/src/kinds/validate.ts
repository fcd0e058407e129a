import { Validator, type OutputUnit } from '@cfworker/json-schema';
import type { ErrorSchema, ValidatorType } from '@rjsf/utils';
import type { FieldError } from '../api/problem';
import type { Data, Schema } from './schema';

/** An error in a spec: the field's path and a message. */
export interface Fault {
  path: string[];
  message: string;
}

/**
 * Errors that the API server would report by the schema. The validator interprets schemas:
 * validators that compile schemas need `eval`, which the portal forbids.
 */
export function faultsIn(schema: Schema, data: unknown): Fault[] {
  const errors = errorsIn(schema, data);
  const faults = errors.flatMap((unit) => faultsBy(schema, data, unit));
  return faults.filter(
    ({ path }, index) => faults.findIndex((other) => same(other.path, path)) === index,
  );
}

function errorsIn(schema: Schema, data: unknown): OutputUnit[] {
  try {
    return validatorOf(schema).validate(data).errors;
  } catch {
    const known = new Validator(readable(schema) as object, '2019-09', false);
    validators.set(schema, known);
    return known.validate(data).errors;
  }
}

/** A schema is prepared once, not after every key press. */
const validators = new WeakMap<Schema, Validator>();

function validatorOf(schema: Schema): Validator {
  const known = validators.get(schema) ?? new Validator(schema as object, '2019-09', false);
  validators.set(schema, known);
  return known;
}

/** A schema without patterns that browsers cannot parse. The server checks those patterns. */
function readable(schema: Schema): Schema {
  const reads = (pattern: string) => {
    try {
      return Boolean(new RegExp(pattern, 'u'));
    } catch {
      return false;
    }
  };
  const drop = (name: string, value: unknown): unknown =>
    name === 'pattern' && typeof value === 'string' && !reads(value) ? undefined : value;
  return JSON.parse(JSON.stringify(schema, drop)) as Schema;
}

function same(a: string[], b: string[]): boolean {
  return a.length === b.length && a.every((step, index) => step === b[index]);
}

/** Keywords whose errors only report that a value below them has an error. */
const ABOVE = ['properties', 'items', 'additionalProperties', 'allOf', 'anyOf', '$ref'];

function faultsBy(
  schema: Schema,
  data: unknown,
  { keyword, instanceLocation, error }: OutputUnit,
): Fault[] {
  if (ABOVE.includes(keyword)) return [];
  const path = instanceLocation
    .split('/')
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'));
  if (keyword === 'required') {
    const value = path.reduce<unknown>((one, step) => (one as Data)[step], data) as Data;
    const missing = (at(schema, path).required ?? []).filter((name) => !(name in value));
    return missing.map((name) => ({ path: [...path, name], message: 'Required' }));
  }
  return [{ path, message: told(keyword, at(schema, path), error) }];
}

function at(schema: Schema, path: string[]): Schema {
  return path.reduce<Schema>((one, step) => one.properties?.[step] ?? one.items ?? {}, schema);
}

/** The instruction for a field of each type. */
const TYPES: Record<string, string> = {
  integer: 'Enter a whole number',
  number: 'Enter a number',
  string: 'Enter a text',
  boolean: 'Choose yes or no',
  array: 'Enter a list',
  object: 'Enter YAML, for example replicas: 2',
};

function told(keyword: string, schema: Schema, error: string): string {
  const texts: Record<string, string> = {
    enum: `Allowed: ${(schema.enum ?? []).map(String).join(', ')}`,
    minimum: `At least ${schema.minimum}`,
    maximum: `At most ${schema.maximum}`,
    minLength: 'Required',
    maxLength: `At most ${schema.maxLength} characters`,
    maxItems: `At most ${schema.maxItems}`,
    maxProperties: `At most ${String(schema.maxProperties)}`,
    type: TYPES[String(schema.type)] ?? 'Invalid value',
    pattern: formatOf(schema.pattern ?? ''),
  };
  return texts[keyword] ?? error;
}

/** The instruction for a pattern. */
function formatOf(pattern: string): string {
  if (pattern.includes('[smhdw]'))
    return 'Use a whole number with s, m, h, d or w, for example 8h, or never';
  return pattern.length < 50 ? `Invalid format. Pattern: ${pattern}` : 'Invalid format';
}

/** Converts faults to the form's representation. */
export function errorSchema(faults: readonly Fault[]): ErrorSchema<Data> {
  const root: ErrorSchema = {};
  for (const { path, message } of faults) {
    const place = path.reduce<ErrorSchema>(
      (one, step) => ((one as Record<string, ErrorSchema>)[step] ??= {}),
      root,
    );
    place.__errors = [...(place.__errors ?? []), message];
  }
  return root;
}

/**
 * All messages of a field, which may be none. A message of a list's entry starts with its line
 * number.
 */
export function messagesIn(errors: ErrorSchema | undefined, prefix = ''): string[] {
  if (!errors) return [];
  const { __errors: own = [], ...below } = errors;
  const inner = Object.entries(below).flatMap(([name, one]) =>
    messagesIn(one as ErrorSchema, /^\d+$/.test(name) ? `Line ${Number(name) + 1}: ` : `${name}: `),
  );
  return [...own.map((message) => prefix + message), ...inner];
}

/**
 * Splits the server's errors into errors of the spec's fields and others. `spec.backend.env[0]` is
 * the first entry of `env`.
 */
export function faultsOf(errors: readonly FieldError[]): { faults: Fault[]; others: FieldError[] } {
  const faults: Fault[] = [];
  const others: FieldError[] = [];
  for (const error of errors) {
    const [first, ...path] = error.field
      .replaceAll(/\[["']?([^\]"']*)["']?\]/g, '.$1')
      .split('.')
      .filter(Boolean);
    if (first === 'spec') faults.push({ path, message: error.message });
    else others.push(error);
  }
  return { faults, others };
}

/** The validator that react-jsonschema-form requires. The form gets its errors from outside. */
export const validator: ValidatorType<Data, Schema> = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: (schema, data) => faultsIn(schema, data).length === 0,
  rawValidation: () => ({ errors: [] }),
};
