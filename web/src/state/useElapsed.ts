import { useEffect, useState } from 'react';

/**
 * Whether so many milliseconds have passed since this was first drawn: what is over sooner is not
 * worth a word.
 */
export function useElapsed(milliseconds: number): boolean {
  const [elapsed, setElapsed] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setElapsed(true), milliseconds);
    return () => clearTimeout(timer);
  }, [milliseconds]);
  return elapsed;
}
