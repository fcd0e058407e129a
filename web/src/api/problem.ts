import type { paths } from './schema';

/** The body of an error response (RFC 9457). All operations describe it with the same schema. */
export type Problem =
  paths['/api/v1/me']['get']['responses']['4XX']['content']['application/problem+json'];

/** The error of one field. */
export type FieldError = NonNullable<Problem['errors']>[number];

/** An error response, with the server's message (RFC 9457). */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
    this.name = 'Refused';
  }

  /** If the body is not a problem, for example a proxy's page, the message has only the status. */
  static of(body: unknown, response: Response): Refused {
    return new Refused(isProblem(body) ? body : told(response.status, statusWords(response)));
  }

  /** Returns the reason why a response has no further content. */
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
 * The error that redirected the user to this page. The URL is replaced, because loading the failed
 * URL again would fail again.
 */
export function arrival(): Refused | undefined {
  const told = document.getElementById('problem')?.textContent;
  if (!told) return undefined;
  window.history.replaceState(null, '', '/');
  const body: unknown = JSON.parse(told);
  return isProblem(body) ? new Refused(body) : undefined;
}

/** The portal did not respond. */
export function unreachable(): Problem {
  return told(0, 'The portal does not respond. Check your connection.');
}

/** The request was not sent, for this reason. */
export function unsent(why: string): Problem {
  return told(400, why);
}

/** The reason of a rejection for the budget, before the request is sent. */
const OVER_BUDGET = 'OverBudget';

/** The rejection of a document with a preview that exceeds the budget of its namespace. */
export function overBudget(error: FieldError): Refused {
  const problem = told(422, error.message);
  return new Refused({ ...problem, reason: OVER_BUDGET, errors: [error] });
}

/** Whether a document is rejected for the budget, so that the portal does not accept it at all. */
export function isOverBudget({ problem }: Refused): boolean {
  return problem.reason === OVER_BUDGET;
}

/** The message to show for any thrown value. */
export function words(error: unknown): string {
  if (error instanceof Refused) return error.problem.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Whether the cluster or the function rejects a document, and would do so again. */
export function isRejected(error: unknown): error is Refused {
  return error instanceof Refused && error.status === 422;
}

/** Whether all errors are about fields of the spec, so that the form marks them. */
export function isMarked({ fields }: Refused): boolean {
  return fields.length > 0 && fields.every(({ field }) => field.startsWith('spec.'));
}

/**
 * Whether the operation may have succeeded despite the error. The response was lost, or a proxy
 * stopped waiting for it.
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
