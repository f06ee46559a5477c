import { useLive, type Overview } from '../../api/index.ts';
import { useHref, useRoute } from '../../route/index.ts';
import { ended, Waiting } from '../../ui/index.ts';
import { HeatmapPanel } from './HeatmapPanel.tsx';
import { KindStrip } from './KindStrip.tsx';
import { NoAnomalies } from './NoAnomalies.tsx';
import { NoData } from './NoData.tsx';
import { Notes } from './Notes.tsx';
import { Notices } from './Notices.tsx';
import { PacketTiles, PacketWorst } from './Packets.tsx';
import { Tiles } from './Tiles.tsx';
import { TopFindings } from './TopFindings.tsx';
import './overview.css';

/** Whether the run is healthy and, if not, where and since when. */
export default function OverviewView() {
  const { overview } = useLive();
  if (!overview) return <Waiting label="loading the overview" lines={8} />;
  const has = (topic: string) => overview.notices.some((n) => n.topic === topic);
  const notices = overview.notices.filter((n) => n.topic !== 'no-data');
  const noData = has('no-data');
  return (
    <div className="overview">
      <Verdict overview={overview} />
      <Notices notices={notices} />
      {noData ? (
        <div className="panel">
          <NoData overview={overview} />
        </div>
      ) : overview.packets ? (
        <>
          <PacketTiles figures={overview.figures} packets={overview.packets} />
          <div className="overview-columns">
            <div className="overview-column">
              <HeatmapPanel warming={false} countsOnly />
            </div>
            <PacketWorst packets={overview.packets} />
          </div>
        </>
      ) : (
        <>
          <Tiles figures={overview.figures} live={overview.live} />
          <div className="overview-columns">
            <div className="overview-column">
              <HeatmapPanel warming={overview.figures.provisional && has('warming')} />
              <KindStrip strip={overview.strip} />
            </div>
            <div className="overview-column">
              {overview.findings.length > 0 ? (
                <TopFindings findings={overview.findings} figures={overview.figures} />
              ) : (
                <NoAnomalies overview={overview} />
              )}
              <Notes notes={overview.notes} />
            </div>
          </div>
        </>
      )}
    </div>
  );
}

/** Reports whether the address selects a part of the run. */
function useNarrowed(): boolean {
  const { query } = useRoute();
  return ['t0', 't1', 'host', 'rank', 'program'].some((k) => (query[k] ?? '') !== '');
}

/** The verdict on the run, with a link to the worst finding. */
function Verdict({ overview }: { overview: Overview }) {
  const href = useHref();
  const narrowed = useNarrowed();
  const { verdict } = overview;
  const worst = overview.findings.find((i) => i.finding === verdict.finding);
  const text = ended(verdict.sentence);
  return (
    <h1 className={`verdict ${verdict.level}`}>
      {worst ? <a href={href({ view: 'findings', query: { sel: worst.key } })}>{text}</a> : text}
      {narrowed && (
        <span
          className="tag"
          title="The verdict and the figures are about the whole run, not only what is selected"
        >
          whole run
        </span>
      )}
    </h1>
  );
}
