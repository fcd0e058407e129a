import type { RJSFSchema, UiSchema } from '@rjsf/utils';
import type { FieldOption, FieldOptions, Kind } from '../api/schema';
import { toLabel } from './format';

/** Data of a spec or of an object in it. */
export type Data = Record<string, unknown>;

/** A schema of an XRD: OpenAPI v3 with the extensions of Kubernetes. */
export type Schema = RJSFSchema & {
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  'x-kubernetes-validations'?: { rule: string; message?: string }[];
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  /** The known values of a text. Other values may be valid too. */
  'x-options'?: readonly FieldOption[];
  /** Whether values that are not known are rejected. */
  'x-closed'?: boolean;
  /** The values that the pattern allows. */
  'x-pattern-in-words'?: string;
};

/** The fields of a kind that the form shows. The page sets the connection Secret itself. */
export function asked({ schema }: Pick<Kind, 'schema'>): Schema {
  const { properties = {}, ...rest } = (schema ?? { type: 'object' }) as Schema;
  const { writeConnectionSecretToRef: _, ...others }: Record<string, Schema> = properties;
  return { ...rest, properties: others };
}

/** Facts about the user that prefill a form. */
export interface Hints {
  login: string;
  keys: readonly string[];
}

/** Hints about an unknown user. */
const NOBODY: Hints = { login: '', keys: [] };

/** Whether environments of a kind give access by SSH keys. */
export function takesKeys(schema: Schema): boolean {
  return keysOf(schema) !== undefined;
}

/** The schema with the known values of its fields. */
export function withOptions(schema: Schema, all: readonly FieldOptions[]): Schema {
  return all.reduce((of, one) => withOption(of, one.field.split('.').slice(1), one), schema);
}

function withOption(
  schema: Schema,
  [name = '', ...rest]: readonly string[],
  known: FieldOptions,
): Schema {
  const one = schema.properties?.[name];
  if (!one) return schema;
  const next: Schema =
    rest.length > 0
      ? withOption(one, rest, known)
      : Object.assign({}, one, { 'x-options': known.options, 'x-closed': known.closed });
  return { ...schema, properties: { ...schema.properties, [name]: next } };
}

/**
 * The schema for a change of `current`: the current values are allowed, although the platform team
 * may no longer offer them.
 */
export function stillOffering(schema: Schema, current: unknown): Schema {
  const known = schema['x-options'];
  if (known && typeof current === 'string' && !known.some(({ value }) => value === current))
    return { ...schema, 'x-options': [{ value: current }, ...known] };
  if (!schema.properties) return schema;
  const of = (name: string) =>
    typeof current === 'object' && current !== null ? (current as Data)[name] : undefined;
  const properties = Object.fromEntries(
    Object.entries(schema.properties).map(([name, one]) => [name, stillOffering(one, of(name))]),
  );
  return { ...schema, properties };
}

/** The field with SSH public keys, in any kind. */
const KEYS = 'sshPublicKeys';

/** The networks from which SSH keys give access. Without a network, no user has access. */
const NETWORKS = 'allowedCidrs';

/** The path of the networks' field of a kind, if it has one. */
export function networksOf(schema: Schema): string[] | undefined {
  return pathOf(NETWORKS, schema);
}

/** The path of the keys' field of a kind, if it has one. */
export function keysOf(schema: Schema): string[] | undefined {
  return pathOf(KEYS, schema);
}

/** Whether the data has no SSH key at this path. */
export function isKeyless(data: Data, path: readonly string[]): boolean {
  const keys = path.reduce<unknown>((of, name) => (of as Data | undefined)?.[name], data);
  return !Array.isArray(keys) || keys.length === 0;
}

function pathOf(field: string, { properties = {} }: Schema): string[] | undefined {
  if (properties[field]) return [field];
  for (const [name, one] of Object.entries(properties)) {
    const below = pathOf(field, one);
    if (below) return [name, ...below];
  }
  return undefined;
}

/** The sort of form field that edits a value. */
export type Sort = 'group' | 'optional-group' | 'lines' | 'pairs' | 'free' | 'plain';

export function sortOf(schema: Schema, required: boolean): Sort {
  if (schema.type === 'array') return schema.items?.type === 'string' ? 'lines' : 'free';
  if (schema.type !== 'object') return 'plain';
  if (!schema.properties) {
    const values = schema.additionalProperties;
    return typeof values === 'object' && values.type === 'string' ? 'pairs' : 'free';
  }
  return !required && (schema.required?.length ?? 0) > 0 ? 'optional-group' : 'group';
}

/** Name of the group with most of a spec. The group has no heading. */
export const MAIN_GROUP = 'parameters';

/** Names of optional fields that users often set, in any kind. */
const COMMON = /^(type|size|instanceType|memory|sshPublicKeys|allowedCidrs|ttl|.*[vV]ersion)$/;

/** Names of fields that have a button on the page of an environment. */
const BUTTONS = /^power$/;

/** Whether a field is initially collapsed: it has a default that few users change. */
export function isAdvanced(name: string, schema: Schema, required: boolean): boolean {
  if (required || COMMON.test(name)) return false;
  if (BUTTONS.test(name)) return true;
  const sort = sortOf(schema, required);
  if (sort === 'group' || sort === 'optional-group') return false;
  return sort !== 'plain' || (schema.type === 'string' && !schema.enum);
}

/**
 * The order of fields in a form: required fields, common fields, groups, other fields. The main
 * group is the first group. Fields of equal rank keep the order of the schema.
 */
export function orderOf(schema: Schema): string[] {
  const required = new Set(schema.required);
  const rank = (name: string) => {
    const one = schema.properties![name]!;
    const group = sortOf(one, required.has(name)).endsWith('group') ? 2 : 0;
    return (
      group +
      (required.has(name) || name === MAIN_GROUP
        ? 0
        : isAdvanced(name, one, false)
          ? 4
          : name === NETWORKS
            ? 0.75
            : COMMON.test(name)
              ? 0.5
              : 1)
    );
  };
  return Object.keys(schema.properties ?? {})
    .map((name, index) => ({ name, index }))
    .sort((a, b) => rank(a.name) - rank(b.name) || a.index - b.index)
    .map(({ name }) => name);
}

/**
 * The initial data of a form: the schema's defaults and the hints about the user. Optional groups
 * start empty.
 */
export function beginning(schema: Schema, hints: Hints = NOBODY): Data {
  const data: Data = {};
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    const required = schema.required?.includes(name) ?? false;
    const value =
      hinted(name, one, required, hints) ??
      (sortOf(one, required) === 'group' ? beginning(one, hints) : undefined) ??
      scalarDefault(one);
    if (value !== undefined) data[name] = value;
  }
  return data;
}

function hinted(name: string, schema: Schema, required: boolean, { login, keys }: Hints): unknown {
  if (name === 'owner' && schema.type === 'string' && required) return login;
  if (name === KEYS && schema.type === 'array' && keys.length > 0)
    return keys.slice(0, schema.maxItems ?? keys.length);
  return undefined;
}

function scalarDefault({ default: value }: Schema): unknown {
  return typeof value === 'object' ? undefined : value;
}

/** The message of the rule that a field cannot be changed, if the schema has such a rule. */
export function frozen(schema: Schema): string | undefined {
  return rule(schema, 'self == oldSelf');
}

function rule(schema: Schema, text: string): string | undefined {
  const found = schema['x-kubernetes-validations']?.find((one) => one.rule.trim() === text);
  return found && (found.message ?? 'Cannot be changed.');
}

/**
 * The schema for a change of `current`: a value that may only grow has its current value as
 * minimum.
 */
export function growing(schema: Schema, current: unknown): Schema {
  if (typeof current === 'number' && rule(schema, 'self >= oldSelf'))
    return { ...schema, minimum: Math.max(current, schema.minimum ?? current) };
  if (!schema.properties) return schema;
  const of = (name: string) =>
    typeof current === 'object' && current !== null ? (current as Data)[name] : undefined;
  const properties = Object.fromEntries(
    Object.entries(schema.properties).map(([name, one]) => [name, growing(one, of(name))]),
  );
  return { ...schema, properties };
}

const FIELDS: Partial<Record<Sort, string>> = {
  'optional-group': 'OptionalGroup',
  lines: 'Lines',
  pairs: 'Pairs',
  free: 'Free',
};

/**
 * The form's configuration for a schema. A change of `current` disables the fields that cannot be
 * changed. Fields without a current value can still be set.
 */
export function uiOf(schema: Schema, current?: Data): UiSchema<Data, Schema> {
  const ui: UiSchema<Data, Schema> = { 'ui:order': orderOf(schema) };
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    const must = schema.required?.includes(name) ?? false;
    const sort = sortOf(one, must);
    // A group without required fields is the same as an empty group.
    const absent = sort === 'group' ? {} : undefined;
    const inner = one.properties
      ? uiOf(one, current && ((current[name] ?? absent) as Data | undefined))
      : {};
    const field = FIELDS[sort];
    const stays = current && frozen(one);
    ui[name] = {
      ...inner,
      'ui:title': titleOf(name),
      ...(field && { 'ui:field': field, 'ui:current': current?.[name] }),
      ...(stays !== undefined && { 'ui:disabled': true, 'ui:help': stays }),
    };
  }
  return ui;
}

/** The form's title of the field at a path. Names that users chose stay as they are. */
export function fieldTitle(schema: Schema, path: readonly string[]): string {
  let of: Schema | undefined = schema;
  const titles = path.map((name) => {
    of = of?.properties?.[name];
    return of ? titleOf(name) : name;
  });
  // Most of a spec lies in one group, which has no heading.
  return titles.slice(path[0] === MAIN_GROUP ? 1 : 0).join(' › ');
}

/** A name in words, without its unit: the description has the unit. */
function titleOf(name: string): string {
  return toLabel(name.replace(/GB$/, ''));
}

/** Returns the data without empty texts and without optional groups that are empty. */
export function pruned(schema: Schema, data: Data): Data {
  const kept = Object.entries(data).flatMap(([name, value]): [string, unknown][] => {
    if (value === undefined || value === null || value === '') return [];
    const one = schema.properties?.[name];
    if (one?.properties && typeof value === 'object') {
      const inner = pruned(one, value as Data);
      return Object.keys(inner).length === 0 &&
        !schema.required?.includes(name) &&
        one.required === undefined
        ? []
        : [[name, inner]];
    }
    return [[name, value]];
  });
  return Object.fromEntries(kept);
}
