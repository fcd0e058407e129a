import type { paths } from './schema';

/** What any operation may be refused with (RFC 9457): every one of them describes it alike. */
export type Problem =
  paths['/api/v1/me']['get']['responses']['4XX']['content']['application/problem+json'];

/** What is wrong with a field. */
export type FieldError = NonNullable<Problem['errors']>[number];

/** What went wrong, in the server's own words (RFC 9457). */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
    this.name = 'Refused';
  }

  /** Of an answer's body; where that is no problem, e.g. a proxy's page, the status alone tells. */
  static of(body: unknown, response: Response): Refused {
    return new Refused(isProblem(body) ? body : told(response.status, statusWords(response)));
  }

  /** What an answer says of why there is no more of it. */
  static async in(response: Response): Promise<string> {
    const body: unknown = await response.json().catch(() => undefined);
    return Refused.of(body, response).problem.detail;
  }

  get status(): number {
    return this.problem.status;
  }

  get fields(): FieldError[] {
    return this.problem.errors ?? [];
  }
}

/**
 * Why this page was shown in the place of another one; the address of that one is left, as it would
 * go wrong again.
 */
export function arrival(): Refused | undefined {
  const told = document.getElementById('problem')?.textContent;
  if (!told) return undefined;
  window.history.replaceState(null, '', '/');
  const body: unknown = JSON.parse(told);
  return isProblem(body) ? new Refused(body) : undefined;
}

/** Nothing answered at all. */
export function unreachable(): Problem {
  return told(0, 'The portal does not respond. Check your connection.');
}

/** Nothing was sent, for this reason. */
export function unsent(why: string): Problem {
  return told(400, why);
}

/** What to show of anything that was thrown. */
export function words(error: unknown): string {
  if (error instanceof Refused) return error.problem.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Whether the cluster or the function rejects a document, and would do so again. */
export function isRejected(error: unknown): error is Refused {
  return error instanceof Refused && error.status === 422;
}

/**
 * Whether what was asked for may have been done all the same: the answer was lost, or somebody on
 * the way has given up waiting for it.
 */
export function mayBeDone(error: unknown): boolean {
  return error instanceof Refused && [0, 502, 503, 504].includes(error.status);
}

function statusWords(response: Response): string {
  return `The portal answered ${response.status}${response.statusText ? ` ${response.statusText}` : ''} without an explanation.`;
}

function told(status: number, detail: string): Problem {
  return { type: 'about:blank', title: 'Problem', status, detail, error: detail };
}

function isProblem(body: unknown): body is Problem {
  return (
    typeof body === 'object' && body !== null && 'detail' in body && typeof body.detail === 'string'
  );
}
