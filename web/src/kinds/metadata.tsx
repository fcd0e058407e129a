import type { ReactElement } from 'react';
import type { Kind } from '../api/schema';
import { toLabel } from './format';

/** The title of a kind, and facts about its environments. */
export interface KindMetadata {
  /** The name of its API, which also selects its picture. */
  api?: string;
  title: string;
  /** The suffix of the names of new environments. */
  suffix: string;
  /** Whether its environments never have an address. */
  addressless: boolean;
  /** Whether the portal offers the kind for new environments. */
  offered: boolean;
  /** The parts that `paved connect` connects to: machine, cluster or database. */
  targets: readonly string[];
  /** Whether it is a claim, and its environments have a composite of their own. */
  claim: boolean;
  /** Data and resources that a stopped environment keeps or loses, in sentences. */
  whenStopped: string;
}

/** An object of a kind, or the kind itself. */
export type OfKind = Pick<Kind, 'kind' | 'apiVersion' | 'plural'>;

/** Returns facts about each kind. The title of an unknown kind is derived from its name. */
export function metadataOf(kinds: readonly Kind[]): (of: OfKind) => KindMetadata {
  const byPath = new Map(kinds.map((kind) => [kindPath(kind), kind]));
  return (of) => {
    const { api, title, suffix, endpoints, connectionTargets, claim, offered, whenStopped } =
      byPath.get(kindPath(of)) ?? {};
    return {
      api: api ?? undefined,
      title: title ?? toLabel(of.kind.replace(/Claim$/, '')),
      suffix: suffix ?? 'env',
      addressless: endpoints?.length === 0,
      offered: offered ?? true,
      targets: connectionTargets ?? NONE,
      claim: claim ?? false,
      whenStopped: whenStopped ?? '',
    };
  };
}

/** The same list at every call, so that pages do not render again. */
const NONE: readonly string[] = [];

const GPU = (
  <>
    <rect x="9" y="13" width="30" height="22" rx="3" className="tint" />
    <rect x="17" y="18" width="14" height="12" rx="2" className="fill" />
    <path d="M15 13V8m9 5V8m9 5V8M15 40v-5m9 5v-5m9 5v-5M9 19H4m5 10H4m40-10h-5m5 10h-5" />
  </>
);
const APPLICATION = (
  <>
    <path d="M24 5l16 8v9L24 30 8 22v-9z" className="tint" />
    <path d="M24 5l16 8-16 8L8 13z" className="fill" />
    <path d="M24 21v9M8 30c0 3 7 6 16 6s16-3 16-6v7c0 3-7 6-16 6S8 40 8 37z" />
  </>
);
const UNIFIED = (
  <>
    <rect x="5" y="7" width="38" height="24" rx="3" className="tint" />
    <path d="M5 14h38M10 10.5h.01M14 10.5h.01" />
    <rect x="10" y="18" width="13" height="8" rx="1.5" className="fill" />
    <path d="M28 19h10M28 24h7M24 31v4M12 35h24v7H12zM17 38.5h.01" />
  </>
);
const STOCK = (
  <>
    <rect x="6" y="26" width="16" height="15" rx="2" className="fill" />
    <rect x="26" y="26" width="16" height="15" rx="2" className="tint" />
    <rect x="16" y="7" width="16" height="15" rx="2" className="tint" />
    <path d="M22 7v5h4V7M12 26v5h4v-5M32 26v5h4v-5" />
  </>
);
const VIRTUAL = (
  <>
    <path d="M24 4l18 10v20L24 44 6 34V14z" className="tint" />
    <path d="M24 15l9 5v9l-9 5-9-5v-9z" className="fill" />
    <path d="M24 4v11M42 14l-9 6M42 34l-9-5M24 44V34M6 34l9-5M6 14l9 6" />
  </>
);
const OTHER = (
  <>
    <rect x="8" y="8" width="32" height="32" rx="5" className="tint" />
    <path d="M17 24h14M24 17v14" />
  </>
);

/** The pictures, by API. */
const PICTURES: Record<string, ReactElement> = {
  'gpu-workspace': GPU,
  'application-environment': APPLICATION,
  'unified-environment': UNIFIED,
  'stock-pool': STOCK,
  'virtual-environment': VIRTUAL,
};

/** The APIs that have a picture of their own. */
export const PICTURED = Object.keys(PICTURES);

/** The picture of an API. It is decoration, because the name is always next to it. */
export function Picture({ api, size = 48 }: { api: string | undefined; size?: number }) {
  return (
    <svg
      className="picture"
      viewBox="0 0 48 48"
      width={size}
      height={size}
      aria-hidden="true"
      focusable="false"
    >
      {PICTURES[api ?? ''] ?? OTHER}
    </svg>
  );
}

/**
 * A kind's name in URL paths. It includes the group, because two groups may have the same plural.
 */
export function kindPath({ plural, apiVersion }: { plural: string; apiVersion: string }): string {
  return `${plural}.${groupOf(apiVersion)}`;
}

/** The API group of an API version. */
export function groupOf(apiVersion: string): string {
  return apiVersion.split('/')[0] ?? '';
}
