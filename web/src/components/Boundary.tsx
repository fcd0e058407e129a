import { useAtomValue } from 'jotai';
import { Component, type ReactNode } from 'react';
import { lineAtom } from '../state/session';
import { Page } from './Page';
import { ProblemAlert } from './ProblemAlert';

interface Props {
  children: ReactNode;
  /** Whether it replaces a whole page, which then needs a title. */
  page?: boolean;
  /** A message to show instead of the error. */
  instead?: ReactNode;
}

/**
 * Shows an error in place of its children; the rest of the page stays. A file that failed to load,
 * for example after an upgrade of the portal, is only requested again when the page is reloaded.
 */
export class Boundary extends Component<Props, { broken: boolean; error?: unknown }> {
  override state: { broken: boolean; error?: unknown } = { broken: false };

  static getDerivedStateFromError(error: unknown) {
    return { broken: true, error };
  }

  override render() {
    if (!this.state.broken) return this.props.children;
    const said = this.props.instead ?? <Broken error={this.state.error} />;
    return this.props.page ? <Page title="Something went wrong">{said}</Page> : said;
  }
}

/**
 * The messages of Chromium, Firefox, Safari and the bundler's loader for a module that failed to
 * load.
 */
const UNLOADED =
  /dynamically imported module|Importing a module script failed|Unable to preload CSS/i;

/**
 * Offers a reload only when the browser is online. Offline, a reload would lose the displayed data.
 */
function Broken({ error }: { error: unknown }) {
  const offline = useAtomValue(lineAtom).state === 'offline';
  const again = offline ? undefined : () => window.location.reload();
  if (!(error instanceof Error && UNLOADED.test(error.message)))
    return <ProblemAlert title="Could not show this section" error={error} again={again} />;
  const why = offline
    ? 'You are offline. Reload the page when you are online again.'
    : 'The portal did not respond, or was upgraded in the meantime. Reload the page.';
  return <ProblemAlert title="Could not load this section" error={why} again={again} />;
}
