import { STATUS_CODES } from 'node:http';
import type { FieldError, Problem } from '../src/api/problem';

/** An error response, thrown by a handler. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    readonly errors: FieldError[] = [],
    readonly reason?: string,
  ) {
    super(detail);
  }

  /** A field of the body or of the query is invalid. */
  static field(field: string, message: string): Refusal {
    return new Refusal(400, `${field}: ${message}`, [{ field, message }]);
  }
}

/** A successful response. */
export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}

/** An error response as the portal writes it. */
export function problem(
  { status, detail, errors, reason }: Refusal,
  instance: string,
  requestId: string,
): Response {
  const body: Problem = {
    type: 'about:blank',
    title: STATUS_CODES[status]!,
    status,
    detail,
    reason,
    instance,
    requestId,
    error: detail,
    ...(errors.length > 0 && { errors }),
  };
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
  };
  if (status === 401) headers['www-authenticate'] = 'Bearer realm="paved-portal"';
  return new Response(JSON.stringify(body), { status, headers });
}

/** A stream of events. */
export class Line {
  private open = true;
  private readonly encoder = new TextEncoder();
  private kept = '';

  /** `buffered`: a proxy holds the events back until `flush`. */
  constructor(
    private readonly controller: ReadableStreamDefaultController<Uint8Array>,
    private readonly closed: () => void,
    private buffered: boolean,
  ) {}

  send(type: string, data: unknown, id?: string, retry?: number): void {
    if (!this.open) return;
    this.kept += `event: ${type}\n${retry ? `retry: ${retry}\n` : ''}${id ? `id: ${id}\n` : ''}data: ${JSON.stringify(data)}\n\n`;
    if (!this.buffered) this.flush();
  }

  /** Sends the events that were held back. From now on, none is held back. */
  flush(): void {
    this.buffered = false;
    this.controller.enqueue(this.encoder.encode(this.kept));
    this.kept = '';
  }

  close(): void {
    if (!this.open) return;
    this.open = false;
    this.closed();
    try {
      this.controller.close();
    } catch {
      // The reader has already cancelled the stream.
    }
  }
}
