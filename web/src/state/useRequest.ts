import { startTransition, useCallback, useEffect, useRef, useState } from 'react';

/**
 * The state of a request: the response or the error. The last response stays until the next one
 * arrives.
 */
export interface RequestState<T> {
  data: T | undefined;
  error: unknown;
  /** The error of the last response. It stays until the next response arrives. */
  failed: unknown;
  pending: boolean;
  again: () => void;
}

/**
 * Requests data whenever `key` changes. Without a key, there is no request. Responses to outdated
 * requests are dropped. The result is rendered in a transition, so that the page keeps responding
 * to input.
 */
export function useRequest<T>(
  key: string | undefined,
  ask: (signal: AbortSignal) => Promise<T>,
): RequestState<T> {
  const [round, setRound] = useState(0);
  const [state, setState] = useState<{ data?: T; error?: unknown; of?: string }>({});
  const latest = useRef(ask);
  useEffect(() => {
    latest.current = ask;
  });
  const question = key === undefined ? undefined : `${round} ${key}`;
  useEffect(() => {
    if (question === undefined) return;
    const gone = new AbortController();
    latest.current(gone.signal).then(
      (data) => {
        if (!gone.signal.aborted) startTransition(() => setState({ data, of: question }));
      },
      (error: unknown) => {
        if (!gone.signal.aborted)
          startTransition(() => setState((before) => ({ data: before.data, error, of: question })));
      },
    );
    return () => gone.abort();
  }, [question]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  return {
    data: state.data,
    error: state.of === question ? state.error : undefined,
    failed: state.error,
    pending: state.of !== question,
    again,
  };
}
