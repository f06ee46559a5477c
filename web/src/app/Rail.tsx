import type { ReactNode } from 'react';
import { useLive, type Overview } from '../api/index.ts';
import { useHref, useRoute, views, type View } from '../route/index.ts';
import { nothing } from '../sql/index.ts';
import {
  CompareIcon,
  EvidenceIcon,
  FunctionsIcon,
  FindingsIcon,
  GpusIcon,
  OverviewIcon,
  PipelineIcon,
  RanksIcon,
  SqlIcon,
  TimelineIcon,
} from './icons.tsx';

/** Names of the views. */
const viewNames: Readonly<Record<View, string>> = {
  overview: 'Overview',
  findings: 'Findings',
  evidence: 'Evidence',
  functions: 'Functions',
  pipeline: 'Pipeline',
  compare: 'Compare',
  ranks: 'Ranks',
  gpus: 'GPUs',
  timeline: 'Timeline',
};

const icons: Readonly<Record<View, () => ReactNode>> = {
  overview: OverviewIcon,
  findings: FindingsIcon,
  evidence: EvidenceIcon,
  functions: FunctionsIcon,
  pipeline: PipelineIcon,
  compare: CompareIcon,
  ranks: RanksIcon,
  gpus: GpusIcon,
  timeline: TimelineIcon,
};

/** The name of a view. That of GPUs of a run without GPUs has only its collective operations. */
export function viewName(view: View, overview: Overview | undefined): string {
  return view === 'gpus' && overview?.gpus === false && overview.collectives
    ? 'Collectives'
    : viewNames[view];
}

/** Whether a run has data for the view of GPUs. */
export function hasGpus(overview: Overview | undefined): boolean {
  return overview?.gpus === true || overview?.collectives === true;
}

/** The views of a run: that of GPUs only if it has data for it. */
export function viewsOf(overview: Overview | undefined): readonly View[] {
  return views.filter((v) => v !== 'gpus' || hasGpus(overview));
}

/** The key that opens a view. */
export function viewKey(view: View): string {
  return String(views.indexOf(view) + 1);
}

/** Navigation to the views. */
export function Rail() {
  const { overview } = useLive();
  const route = useRoute();
  const href = useHref();
  return (
    <nav className="rail" aria-label="Views">
      <a className="skip" href={href({})} onClick={focusMain}>
        Skip to content
      </a>
      <ul>
        {viewsOf(overview).map((view) => {
          const Icon = icons[view];
          return (
            <li key={view}>
              <a
                href={href({ view })}
                aria-current={route.view === view ? 'page' : undefined}
                title={`${viewName(view, overview)} (${viewKey(view)})`}
              >
                <Icon />
                <span>{viewName(view, overview)}</span>
              </a>
            </li>
          );
        })}
      </ul>
      <div className="rail-drawers">
        <a href={href({ query: { sql: nothing } })} title="Query with SQL (`)">
          <SqlIcon />
          <span>SQL</span>
        </a>
      </div>
    </nav>
  );
}

function focusMain(event: { preventDefault: () => void }): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
