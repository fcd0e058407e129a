import { Validator, type OutputUnit } from '@cfworker/json-schema';
import type { ErrorSchema, ValidatorType } from '@rjsf/utils';
import { Refused, type FieldError } from '../api/problem';
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
  // The offer says more than the pattern, so its errors come first.
  const faults = [
    ...offerFaults(schema, data),
    ...errors.flatMap((unit) => faultsBy(schema, data, unit)),
  ];
  return faults.filter(
    ({ path }, index) => faults.findIndex((other) => same(other.path, path)) === index,
  );
}

/** Errors about values that the platform team does not offer. */
function offerFaults(schema: Schema, data: unknown, path: string[] = []): Fault[] {
  const known = schema['x-options'];
  if (known && schema['x-closed'] && typeof data === 'string' && data !== '') {
    const values = known.map(({ value }) => value);
    return values.includes(data) ? [] : [{ path, message: notOffered(data, values) }];
  }
  if (typeof data !== 'object' || data === null) return [];
  return Object.entries(schema.properties ?? {}).flatMap(([name, one]) =>
    offerFaults(one, (data as Data)[name], [...path, name]),
  );
}

/** The longest offer that a message lists. The field itself has the whole list. */
const SHORT = 5;

function notOffered(found: string, values: readonly string[]): string {
  const nearest = values.length > 1 ? nearestOf(found, values) : undefined;
  const hint = nearest ? ` Nearest: ${nearest}` : '';
  const list = values.length <= SHORT ? `Choose ${values.join(', ')}.` : 'Choose from the list.';
  return `${found} is not offered. ${list}${hint}`;
}

/** The most similar value, by pairs of neighbouring letters. */
function nearestOf(found: string, values: readonly string[]): string | undefined {
  const pairs = (text: string) =>
    new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)));
  const own = pairs(found.toLowerCase());
  const likeness = (value: string) => {
    const other = pairs(value);
    const common = [...own].filter((pair) => other.has(pair)).length;
    return (2 * common) / (own.size + other.size);
  };
  const [best] = values
    .map((value) => ({ value, like: likeness(value) }))
    .sort((a, b) => b.like - a.like);
  return best && best.like >= 0.5 ? best.value : undefined;
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
    pattern: `Allowed: ${schema['x-pattern-in-words'] ?? 'the format in the description'}`,
  };
  return texts[keyword] ?? error;
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

/** The errors of a preview at fields that have no error yet. */
export function faultsAhead(error: unknown, known: readonly Fault[]): Fault[] {
  if (!(error instanceof Refused)) return [];
  const { faults } = faultsOf(error.fields);
  return faults.filter(({ path }) => !known.some((one) => same(one.path, path)));
}

/** The validator that react-jsonschema-form requires. The form gets its errors from outside. */
export const validator: ValidatorType<Data, Schema> = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: (schema, data) => faultsIn(schema, data).length === 0,
  rawValidation: () => ({ errors: [] }),
};
