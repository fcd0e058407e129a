import { useEffect, useState } from 'react';

/**
 * Whether so many milliseconds have passed since this was first drawn: what is over sooner is not
 * worth a word.
 */
export function useLater(milliseconds: number): boolean {
  const [later, setLater] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), milliseconds);
    return () => clearTimeout(timer);
  }, [milliseconds]);
  return later;
}
