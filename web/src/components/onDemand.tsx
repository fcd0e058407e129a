import { lazy, Suspense, useState, type ComponentType, type ReactNode } from 'react';
import { Opening } from '../pages/StatusPages';
import { Boundary } from './Boundary';

/**
 * A component that is loaded when it is first drawn, or ahead by `load`. What is there already is
 * drawn at once: React's own `lazy` shows
 * what stands for it meanwhile, also where there is nothing to wait for.
 */
export function onDemand<P extends object>(from: () => Promise<{ default: ComponentType<P> }>) {
  let there: ComponentType<P> | undefined;
  const ask = async () => {
    const module = await from();
    there = module.default;
    return module;
  };
  const Later = lazy(ask) as ComponentType<P>;
  function OnDemand(props: P) {
    // As which of the two it began it goes on: the other would begin anew.
    const [Now] = useState(() => there ?? Later);
    return <Now {...props} />;
  }
  // That it does not come is said where it is to be drawn.
  const load = () =>
    ask().then(
      () => undefined,
      () => undefined,
    );
  return Object.assign(OnDemand, { load });
}

/** Does something once the browser has nothing else to do; gives what takes it back. */
export function whenIdle(doIt: () => void): () => void {
  // Safari has learnt it late.
  if (!('requestIdleCallback' in window)) {
    const timer = setTimeout(doIt, 1000);
    return () => clearTimeout(timer);
  }
  const callback = requestIdleCallback(doIt);
  return () => cancelIdleCallback(callback);
}

interface LoadedProps {
  /** What stands there meanwhile. */
  fallback?: ReactNode;
  /** What is said where it does not come, other than that. */
  instead?: ReactNode;
  children: ReactNode;
}

/**
 * What is on demand in a page, in its own place: where it does not come everything around it stays.
 */
export function Loaded({ fallback = <Opening />, instead, children }: LoadedProps) {
  return (
    <Boundary instead={instead}>
      <Suspense fallback={fallback}>{children}</Suspense>
    </Boundary>
  );
}
