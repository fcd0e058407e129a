import { startTransition, useCallback, useEffect, useRef, useState } from 'react';

/**
 * What was asked of the portal: the answer, or why there is none. The last answer stays while the
 * next is waited for.
 */
export interface RequestState<T> {
  data: T | undefined;
  error: unknown;
  /** Why there was no answer the last time; it stays while the next is waited for. */
  failed: unknown;
  pending: boolean;
  again: () => void;
}

/**
 * Asks whenever `key` changes; without a key nothing. Answers that come after the next question are
 * dropped. What is made of an answer
 * is drawn piece by piece: meanwhile the page hears what somebody types.
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
