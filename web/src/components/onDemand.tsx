import { lazy, Suspense, useState, type ComponentType, type ReactNode } from 'react';
import { Opening } from '../pages/StatusPages';
import { Boundary } from './Boundary';

/**
 * A component that is loaded at its first render, or earlier by `load`. A loaded component renders
 * immediately. React's `lazy` would show its fallback first.
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
    // The component must not change between renders, because that would reset its state.
    const [Now] = useState(() => there ?? Later);
    return <Now {...props} />;
  }
  // The error is shown when the component renders.
  const load = () =>
    ask().then(
      () => undefined,
      () => undefined,
    );
  return Object.assign(OnDemand, { load });
}

/** Runs a function when the browser is idle. Returns a function that cancels it. */
export function whenIdle(doIt: () => void): () => void {
  // Older versions of Safari do not have it.
  if (!('requestIdleCallback' in window)) {
    const timer = setTimeout(doIt, 1000);
    return () => clearTimeout(timer);
  }
  const callback = requestIdleCallback(doIt);
  return () => cancelIdleCallback(callback);
}

interface LoadedProps {
  /** Shown while the children load. */
  fallback?: ReactNode;
  /** Shown if loading fails, instead of the error. */
  instead?: ReactNode;
  children: ReactNode;
}

/** Content that loads on demand. If it fails to load, the rest of the page stays. */
export function Loaded({ fallback = <Opening />, instead, children }: LoadedProps) {
  return (
    <Boundary instead={instead}>
      <Suspense fallback={fallback}>{children}</Suspense>
    </Boundary>
  );
}
