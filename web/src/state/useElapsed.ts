import { useEffect, useState } from 'react';

/**
 * Whether this many milliseconds have passed since the first render. A shorter wait needs no
 * message.
 */
export function useElapsed(milliseconds: number): boolean {
  const [elapsed, setElapsed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setElapsed(true), milliseconds);
    return () => clearTimeout(timer);
  }, [milliseconds]);
  return elapsed;
}
