import { lazy, Suspense, useEffect, useState } from 'react';
import { SessionProvider } from '../api/SessionProvider.tsx';
import { useLive } from '../api/index.ts';
import { closeExplain, ExplainDrawer, selectionOf, writeSelection } from '../explain/index.ts';
import { useKeys, type Binding } from '../keys/index.ts';
import { back, go, useRoute, type Route, type View } from '../route/index.ts';
import { nothing } from '../sql/index.ts';
import { toggleTheme } from '../theme/index.ts';
import { copyText, Failure, HelpSheet, loadCharts, Waiting } from '../ui/index.ts';
import OverviewView from '../views/overview/OverviewView.tsx';
import { Boundary } from './Boundary.tsx';
import { LinkState } from './LinkState.tsx';
import { persist, whenIdle } from './load.ts';
import { hasGpus, Rail, viewKey, viewName, viewsOf } from './Rail.tsx';
import { TopBar } from './TopBar.tsx';
import './app.css';

const findings = () => import('../views/findings/FindingsView.tsx');
const evidence = () => import('../views/evidence/EvidenceView.tsx');
const functions = () => import('../views/functions/FunctionsView.tsx');
const pipeline = () => import('../views/pipeline/PipelineView.tsx');
const compare = () => import('../views/compare/CompareView.tsx');
const ranks = () => import('../views/ranks/RanksView.tsx');
const gpus = () => import('../views/gpus/GpusView.tsx');
const timeline = () => import('../views/timeline/TimelineView.tsx');
const sql = () => import('../sql/SqlDrawer.tsx');

const FindingsView = lazy(() => persist(findings));
const EvidenceView = lazy(() => persist(evidence));
const FunctionsView = lazy(() => persist(functions));
const PipelineView = lazy(() => persist(pipeline));
const CompareView = lazy(() => persist(compare));
const RanksView = lazy(() => persist(ranks));
const GpusView = lazy(() => persist(gpus));
const TimelineView = lazy(() => persist(timeline));
const SqlDrawer = lazy(() => persist(sql));

/** The page. */
export function App() {
  const route = useRoute();
  useEffect(
    () =>
      whenIdle([
        findings,
        evidence,
        pipeline,
        functions,
        ranks,
        gpus,
        timeline,
        compare,
        sql,
        loadCharts,
      ]),
    [],
  );
  return (
    <SessionProvider run={route.query.run ?? ''}>
      <Frame />
    </SessionProvider>
  );
}

/** The frame around the view in the address. */
export function Frame() {
  const route = useRoute();
  const session = useLive();
  const [help, setHelp] = useState(false);
  const [status, setStatus] = useState('');
  const name = session.run === '' ? '' : `${session.run} · `;
  const title = viewName(route.view, session.overview);
  useEffect(() => {
    document.title = `${name}${title} · Chimbuko`;
  }, [name, title]);
  const everywhere = 'Everywhere';
  const opens = (view: View): Binding => ({
    key: viewKey(view),
    label: viewName(view, session.overview),
    group: everywhere,
    run: () => go({ view }),
  });
  const keys: Binding[] = [
    ...viewsOf(undefined).map(opens),
    {
      key: 'c',
      label: viewName('compare', session.overview),
      group: everywhere,
      run: () => go({ view: 'compare' }),
    },
    {
      key: '/',
      label: 'search',
      group: everywhere,
      run: () => document.getElementById('search')?.focus(),
    },
    {
      key: 'p',
      label: 'pause or resume updates',
      group: everywhere,
      run: () => session.pause(!session.paused),
    },
    {
      key: 'e',
      label: 'explain the selection',
      group: everywhere,
      run: () =>
        route.query.explain === undefined
          ? go({ query: { explain: writeSelection(selectionOf(route, session.overview)) } })
          : closeExplain(),
    },
    {
      key: '`',
      label: 'query with SQL',
      group: everywhere,
      run: () => go({ query: { sql: nothing } }),
    },
    { key: 't', label: 'switch the theme', group: everywhere, run: toggleTheme },
    {
      key: 'y',
      label: 'copy a link to this view',
      group: everywhere,
      run: () =>
        void copyText(location.href).then((ok) =>
          setStatus(ok ? 'link copied' : 'copy failed: copy the address of the page'),
        ),
    },
    { key: '?', label: 'show this list', group: everywhere, run: () => setHelp(true) },
    {
      key: 'Escape',
      label: 'back',
      group: everywhere,
      run: () => (help ? setHelp(false) : back()),
    },
  ];
  useKeys(keys);
  useKeys([opens('gpus')], hasGpus(session.overview));
  return (
    <div className="app">
      <Rail />
      <TopBar onHelp={() => setHelp(true)} />
      <main id="main" tabIndex={-1}>
        <LinkState />
        <Boundary key={route.view}>
          <Suspense fallback={<Waiting label="loading the view" />}>
            {session.problem ? <Failure problem={session.problem} /> : <Shown route={route} />}
          </Suspense>
        </Boundary>
      </main>
      {route.query.sql !== undefined && (
        <Suspense fallback={null}>
          <SqlDrawer />
        </Suspense>
      )}
      <div role="status" className="visually-hidden">
        {status}
      </div>
      {!session.problem && <ExplainDrawer />}
      {help && <HelpSheet onClose={() => setHelp(false)} />}
    </div>
  );
}

function Shown({ route }: { route: Route }) {
  switch (route.view) {
    case 'findings':
      return <FindingsView />;
    case 'evidence':
      return <EvidenceView key={route.event} event={route.event} />;
    case 'functions':
      return <FunctionsView />;
    case 'pipeline':
      return <PipelineView />;
    case 'compare':
      return <CompareView />;
    case 'ranks':
      return <RanksView />;
    case 'timeline':
      return <TimelineView />;
    case 'gpus':
      return <GpusView />;
    default:
      return <OverviewView />;
  }
}
