import { Validator } from '@cfworker/json-schema';
import type { FieldError } from '../src/api/problem';
import type { Document, Kind } from '../src/api/schema';
import type { Schema } from '../src/kinds/schema';

/** Rules that no browser checks, by their text in CEL. */
const RULES: Record<string, (self: Record<string, unknown>) => boolean> = {
  "!has(self.type) || self.type == 'vcluster' || self.expose != 'loadBalancer'": ({
    type = 'vcluster',
    expose,
  }) => type === 'vcluster' || expose !== 'loadBalancer',
};

/**
 * The violations that the API server reports: those of the schema, and only without these those of
 * the schema's rules.
 */
export function violations({ schema }: Kind, document: Document): FieldError[] {
  const { writeConnectionSecretToRef: _, ...spec } = document.spec;
  const { errors } = new Validator(schema as object, '2019-09', false).validate(spec);
  const leaves = errors.filter(
    ({ keyword }) => !['properties', 'items', 'allOf', '$ref'].includes(keyword),
  );
  if (leaves.length === 0) return broken(schema as Schema, spec, 'spec');
  return leaves.map(({ instanceLocation, error }) => ({
    field: `spec${instanceLocation.slice(1).replaceAll('/', '.')}`,
    message: error,
  }));
}

function broken(schema: Schema, data: unknown, field: string): FieldError[] {
  if (typeof data !== 'object' || data === null) return [];
  const self = data as Record<string, unknown>;
  const own = (schema['x-kubernetes-validations'] ?? [])
    .filter(({ rule }) => RULES[rule]?.(self) === false)
    .map(({ message = '' }) => ({ field, message }));
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, one]) =>
    broken(one, self[name], `${field}.${name}`),
  );
  return [...own, ...below];
}
