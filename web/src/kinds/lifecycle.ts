import type { Environment } from '../api/schema';

type Powered = Pick<Environment, 'power' | 'lifecycle' | 'deletedAt' | 'cannotStop' | 'paused'>;

/** Whether the environment is stopped, or is being stopped. */
export function isOff({ power }: Pick<Environment, 'power'>): boolean {
  return power === 'Stopped' || power === 'Stopping';
}

/** The requests that a user can make about an environment. */
export interface Requests {
  extend: boolean;
  stop: boolean;
  start: boolean;
}

/**
 * The requests that have an effect now. An environment of an older schema revision has no lifecycle,
 * and Crossplane does not act on a paused one.
 */
export function requestsOf({ power, lifecycle, deletedAt, cannotStop, paused }: Powered): Requests {
  if (!lifecycle || deletedAt || paused) return { extend: false, stop: false, start: false };
  const off = isOff({ power });
  return {
    extend: Boolean(lifecycle.expiresAt),
    stop: !off && !cannotStop,
    start: off || power === 'Unknown',
  };
}

/** The next event without a request, and its time (RFC 3339). */
export interface End {
  at: string;
  action: 'stops' | 'expires' | 'is deleted';
}

/** The next end of an environment, as its status has it. A stopped one can only be deleted. */
export function endOf({
  power,
  lifecycle,
  deletedAt,
}: Pick<Powered, 'power' | 'lifecycle' | 'deletedAt'>): End | undefined {
  if (!lifecycle || deletedAt) return undefined;
  const { expiresAt, deletesAt, onExpiry } = lifecycle;
  if (deletesAt && (isOff({ power }) || onExpiry === 'Delete'))
    return { at: deletesAt, action: 'is deleted' };
  if (!expiresAt || isOff({ power })) return undefined;
  return { at: expiresAt, action: onExpiry === 'Stop' ? 'stops' : 'expires' };
}

/**
 * Whether an environment is paused so that it does not end. The composite of a paused claim
 * continues, and ends.
 */
export function isHeld({ paused }: Pick<Environment, 'paused'>, claim: boolean): boolean {
  return paused && !claim;
}

/** Whether an environment is stopped, paused or near its end, so that its page says it first. */
export function hasBanner(environment: Environment): boolean {
  const { deletedAt, paused, lifecycle, expiring } = environment;
  if (deletedAt || !lifecycle) return false;
  return paused || isOff(environment) || Boolean(expiring);
}

/** Reasons for a stop, as they follow a time. */
const REASONS: Record<string, string> = {
  Requested: 'on request',
  Expired: 'at the end of its time to live',
  Idle: 'because it was idle',
  Interrupted: 'by the cloud, which took back the spot machine',
  Unknown: 'without a request',
};

/** The reason for a stop, as it follows a time. */
export function stopReason({ lifecycle }: Pick<Environment, 'lifecycle'>): string {
  return REASONS[lifecycle?.stopReason ?? ''] ?? '';
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** The seconds of a duration, for example `8h`; `undefined` for `never` and unreadable texts. */
export function secondsOf(duration: string | null | undefined): number | undefined {
  const [, amount, unit] = /^([1-9]\d{0,4})([smhdw])$/.exec(duration ?? '') ?? [];
  return amount && unit ? Number(amount) * SECONDS[unit]! : undefined;
}

/** Durations for an extension, with their titles. */
const EXTENSIONS: [duration: string, title: string][] = [
  ['1h', '1 hour'],
  ['4h', '4 hours'],
  ['8h', '8 hours'],
  ['1d', '1 day'],
  ['3d', '3 days'],
  ['1w', '1 week'],
  ['2w', '2 weeks'],
];

/** An extension that a user can choose. It has no `seconds` if it removes the end. */
export interface Choice {
  value: string;
  label: string;
  seconds?: number;
}

/**
 * The extensions that move the end of an environment and that Settings allow. The last one is the
 * maximum, or no end where Settings have no maximum.
 */
export function extensionsOf({ lifecycle }: Pick<Environment, 'lifecycle'>, now: number): Choice[] {
  const end = Date.parse(lifecycle?.expiresAt ?? '');
  const most = secondsOf(lifecycle?.maximum);
  const all = EXTENSIONS.map(([value, label]) => ({ value, label, seconds: secondsOf(value)! }));
  const moves = ({ seconds }: Choice) => seconds === undefined || now + seconds * 1000 > end;
  const shorter = all.filter(({ seconds }) => most === undefined || seconds < most);
  const longest =
    most === undefined
      ? { value: NEVER, label: 'No end' }
      : { value: MAXIMUM, label: `Maximum (${lifecycle!.maximum})`, seconds: most };
  return [...shorter, longest].filter(moves);
}

/** The value that stands for the maximum of Settings. */
export const MAXIMUM = 'maximum';

/** The time to live of an environment without an end. */
export const NEVER = 'never';
