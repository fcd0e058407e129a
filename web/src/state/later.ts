import { useEffect, useState } from 'react';

/**
 * Whether this many milliseconds have passed since the first render. A shorter wait needs no
 * message.
 */
export function useLater(milliseconds: number): boolean {
  const [later, setLater] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLater(true), milliseconds);
    return () => clearTimeout(timer);
  }, [milliseconds]);
  return later;
}
