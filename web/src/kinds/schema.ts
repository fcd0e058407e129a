import type { RJSFSchema, UiSchema } from '@rjsf/utils';
import type { Kind } from '../api/schema';
import { toLabel } from './format';

/** Data of a spec, or of a part of it. */
export type Data = Record<string, unknown>;

/** A schema as XRDs have it: OpenAPI v3 with Kubernetes' own words. */
export type Schema = RJSFSchema & {
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  'x-kubernetes-validations'?: { rule: string; message?: string }[];
  'x-kubernetes-preserve-unknown-fields'?: boolean;
};

/**
 * What people are asked for of a kind. Where a claim's connection details go is nothing to ask for:
 * the page says it itself.
 */
export function asked({ schema }: Pick<Kind, 'schema'>): Schema {
  const { properties = {}, ...rest } = (schema ?? { type: 'object' }) as Schema;
  const { writeConnectionSecretToRef: _, ...others } = properties;
  return { ...rest, properties: others };
}

/** What is known of whoever fills in a form. */
export interface Hints {
  login: string;
  keys: readonly string[];
}

/** Of whom nothing is known. */
const NOBODY: Hints = { login: '', keys: [] };

/** Whether a kind lets people in by their SSH keys. */
export function takesKeys({ properties = {} }: Schema): boolean {
  return Object.entries(properties).some(([name, one]) => name === KEYS || takesKeys(one));
}

/** The field with SSH public keys, whatever kind it stands in. */
const KEYS = 'sshPublicKeys';

/** The networks from which those count: without one nobody gets in by them. */
const NETWORKS = 'allowedCidrs';

/** Where a kind's networks are said, if it has any. */
export function networksOf({ properties = {} }: Schema): string[] | undefined {
  if (properties[NETWORKS]) return [NETWORKS];
  for (const [name, one] of Object.entries(properties)) {
    const below = networksOf(one);
    if (below) return [name, ...below];
  }
  return undefined;
}

/** By what sort of field something is filled in. */
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

/** Names of optional fields that people choose often, whatever kind they stand in. */
const COMMON = /^(type|size|instanceType|memory|sshPublicKeys|allowedCidrs|.*[vV]ersion)$/;

/** Whether a field is folded away at first: it has a default, and few ever change it. */
export function isAdvanced(name: string, schema: Schema, required: boolean): boolean {
  if (required || COMMON.test(name)) return false;
  const sort = sortOf(schema, required);
  if (sort === 'group' || sort === 'optional-group') return false;
  return sort !== 'plain' || (schema.type === 'string' && !schema.enum);
}

/**
 * The order in a form: what must be said, what is often said, groups, the rest; within each as the
 * schema has it.
 */
export function orderOf(schema: Schema): string[] {
  const required = new Set(schema.required);
  const rank = (name: string) => {
    const one = schema.properties![name]!;
    const group = sortOf(one, required.has(name)).endsWith('group') ? 2 : 0;
    return (
      group +
      (required.has(name)
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
 * What a form begins with: the schema's defaults, and what is known of the person. Optional groups
 * begin without anything.
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

/** The schema for a change of what there is: what may only grow begins where it is. */
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
 * How the form shows a schema. A change of what is there, `current`, freezes what cannot be changed
 * of it; what is not there may still be chosen.
 */
export function uiOf(schema: Schema, current?: Data): UiSchema<Data, Schema> {
  const ui: UiSchema<Data, Schema> = { 'ui:order': orderOf(schema) };
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    const must = schema.required?.includes(name) ?? false;
    const inner = one.properties ? uiOf(one, current?.[name] as Data | undefined) : {};
    const field = FIELDS[sortOf(one, must)];
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

/** What the form calls the field at a path; what people have named themselves is called so. */
export function fieldTitle(schema: Schema, path: readonly string[]): string {
  let of: Schema | undefined = schema;
  const titles = path.map((name) => {
    of = of?.properties?.[name];
    return of ? titleOf(name) : name;
  });
  // Most of a spec lies in one group, which has no heading.
  return titles.slice(path[0] === 'parameters' ? 1 : 0).join(' › ');
}

/** A name in words, without its unit: the description has the unit. */
function titleOf(name: string): string {
  return toLabel(name.replace(/GB$/, ''));
}

/** Data without what says nothing: empty texts, and groups that are empty and need not be there. */
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
