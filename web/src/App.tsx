import { createTheme, MantineProvider, localStorageColorSchemeManager } from '@mantine/core';
import { Provider, useAtomValue, type createStore } from 'jotai';
import { lazy, Suspense, useEffect } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { EnvironmentPage } from './pages/Environment';
import { EnvironmentsPage } from './pages/Environments';
import { KeysPage } from './pages/Keys';
import { OperationsPage } from './pages/Operations';
import { SignInPage, SessionEnded } from './pages/SignIn';
import { Forbidden, Nothing, Opening, Unreachable } from './pages/States';
import { Boundary } from './parts/Boundary';
import { Frame } from './parts/Frame';
import { PortalProvider, type Portal } from './state/portal';
import { sessionAtom } from './state/session';

// The form's machinery is as large as everything else: only whoever makes something loads it.
const CreatePage = lazy(() => import('./pages/Create'));

const theme = createTheme({
  primaryColor: 'teal',
  primaryShade: { light: 9, dark: 9 },
  defaultRadius: 'md',
  respectReducedMotion: true,
  fontFamily: 'var(--font)',
  headings: { fontFamily: 'var(--font)' },
  // What these would write into the page while it runs is forbidden there.
  components: { Modal: { defaultProps: { lockScroll: false, attributes: { header: { role: 'presentation' } } } } },
});
const scheme = localStorageColorSchemeManager({ key: 'paved-scheme' });

interface Props {
  store: ReturnType<typeof createStore>;
  portal: Portal;
}

/** Everything. */
export function App({ store, portal }: Props) {
  useEffect(() => portal.begin(), [portal]);
  return (
    <Provider store={store}>
      <MantineProvider theme={theme} defaultColorScheme="auto" colorSchemeManager={scheme} withCssVariables={false} withGlobalClasses={false}>
        <PortalProvider value={portal}>
          <Gate />
        </PortalProvider>
      </MantineProvider>
    </Provider>
  );
}

function Gate() {
  const session = useAtomValue(sessionAtom);
  const [location] = useLocation();
  if (session.state === 'unknown') return <Opening />;
  if (session.state === 'unreachable') return <Unreachable why={session.why} />;
  if (session.state === 'refused') return <Forbidden error={session.error} />;
  if (session.state === 'out' && !session.me) return <SignInPage told={session.told} />;
  return (
    <Frame>
      {session.state === 'out' && <SessionEnded why={session.why} />}
      <Boundary key={location} page>
        <Suspense fallback={<Opening />}>
          <Switch>
            <Route path="/" component={EnvironmentsPage} />
            <Route path="/new" component={CreatePage} />
            <Route path="/environments/:namespace/:kind/:name">{(params) => <EnvironmentPage params={params} />}</Route>
            <Route path="/keys" component={KeysPage} />
            <Route path="/operations" component={OperationsPage} />
            <Route component={Nothing} />
          </Switch>
        </Suspense>
      </Boundary>
    </Frame>
  );
}
