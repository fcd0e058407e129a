/**
 * The delay before another attempt, in milliseconds. It doubles, with jitter, so that many clients
 * do not reconnect at the same time.
 */
export function backoff(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(30_000, 1_000 * 2 ** Math.min(attempt, 10));
  return Math.round(most / 2 + (most / 2) * random());
}
