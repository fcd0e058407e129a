import type { Part } from '../api/schema';
import { toLabel } from './format';

/** A composed resource with the resources below it, or a group with a common first word. */
export interface Node {
  name: string;
  part?: Part;
  children: Node[];
  /** Whether the group has only helper resources. */
  helpers?: true;
}

/** Kinds that only order or connect other resources. They are shown last and not counted. */
const HELPERS = ['Usage', 'ProviderConfig', 'ClusterProviderConfig'];

/** Whether a resource only serves other resources. */
export function isHelper({ kind }: Part): boolean {
  return HELPERS.includes(kind);
}

/** The displayed name of a resource. */
export function nameOf({ slot }: Pick<Part, 'slot'>): string {
  return toLabel(slot);
}

/**
 * Resources as a tree, by their slots: `role-ssm` belongs to `role`; `frontend-bucket` and
 * `frontend-site` share `frontend`. Slots never change, so a resource never moves in the tree.
 */
export function treeOf(parts: readonly Part[]): Node[] {
  const slots = new Map(parts.map((part) => [part.slot, part]));
  const nodes = new Map<string, Node>(
    parts.map((part) => [part.slot, { name: part.slot, part, children: [] }]),
  );
  const roots: Node[] = [];
  for (const part of parts) {
    const parent = longestPrefix(part.slot, slots);
    (parent === undefined ? roots : nodes.get(parent)!.children).push(nodes.get(part.slot)!);
  }
  return gathered(roots);
}

function longestPrefix(slot: string, slots: ReadonlyMap<string, Part>): string | undefined {
  for (let end = slot.lastIndexOf('-'); end > 0; end = slot.lastIndexOf('-', end - 1)) {
    const prefix = slot.slice(0, end);
    if (slots.has(prefix)) return prefix;
  }
  return undefined;
}

/** Groups nodes by their first word. Helpers are last. */
function gathered(roots: readonly Node[]): Node[] {
  const groups = new Map<string, Node[]>();
  for (const node of roots) {
    const word = node.name.split('-')[0]!;
    const group = node.part && isHelper(node.part) ? '~helpers' : word;
    groups.set(group, [...(groups.get(group) ?? []), node]);
  }
  const helpers = groups.get('~helpers') ?? [];
  groups.delete('~helpers');
  const tops = [...groups].map(([name, nodes]) =>
    nodes.length > 1 ? { name, children: nodes } : nodes[0]!,
  );
  return helpers.length > 0
    ? [...tops, { name: 'internal resources', children: helpers, helpers: true as const }]
    : tops;
}
