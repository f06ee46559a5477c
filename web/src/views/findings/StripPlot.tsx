import { useCallback, useMemo, useState } from 'react';
import { useLive, type Finding, type Plot } from '../../api/index.ts';
import { BoxSelect, LassoSelect, writeSelection, type Selection } from '../../explain/index.ts';
import { count, duration } from '../../format/index.ts';
import { eventPath, go, choice, useParam, useSpan } from '../../route/index.ts';
import {
  Chart,
  ExportFigure,
  ScaleChoice,
  Segmented,
  useAxisScale,
  type ChartColors,
} from '../../ui/index.ts';
import { bestBy, colorGroups, gridOf, limits, pointOf, stripOption } from './stripOption.ts';

const chosenBy = choice('', 'kind', 'host', 'rank');

const colors = [
  ['kind', 'kind'],
  ['host', 'host'],
  ['rank', 'rank'],
] as const;

const drawings = [
  ['box', 'Explain box', 'Draw a box around executions to explain how they differ'],
  [
    'lasso',
    'lasso',
    'Draw a lasso around executions to explain how they differ. By keyboard: press e to explain the finding, then filter by any field',
  ],
] as const;

/** Durations over time: typical executions in gray, anomalies in color, the usual range as a band. */
export function StripPlot({ plot, finding }: { plot: Plot; finding: Finding }) {
  const { overview } = useLive();
  const { t0, t1 } = useSpan();
  const [chosen, choose] = useParam('by', chosenBy);
  const by = chosen === '' ? bestBy(plot.points) : chosen;
  const last = useMemo(() => plot.points.reduce((m, p) => Math.max(m, p.at_s), 0), [plot]);
  const [scale] = useAxisScale();
  const from = t0 ?? 0;
  const to = Math.max(t1 ?? Math.max(overview?.length_s ?? 0, last), from + 1e-3);
  const option = useCallback(
    (c: ChartColors) => stripOption(plot, finding, by, { from, to }, c, scale),
    [plot, finding, by, from, to, scale],
  );
  const anomalies = plot.points.filter((p) => p.anomaly).length;
  const { low, high } = plot.typical_us ?? {};
  const [drawing, draw] = useState<'' | 'box' | 'lasso'>('');
  const [least, most] = limits(plot.points, scale);
  const words =
    `${count(anomalies)} anomalies and ${count(plot.points.length - anomalies)} typical executions over time` +
    (low !== undefined && high !== undefined
      ? `; typical is ${duration(low)} to ${duration(high)}`
      : '') +
    '. The list has each anomaly.';
  const at = (x: number) => String(Number((from + x * (to - from)).toFixed(6)));
  const took = (y: number) =>
    scale === 'linear' ? most + (least - most) * y : most * (least / most) ** y;
  const inset = gridOf(colorGroups(plot.points, by, finding.kind).length);
  const explain = (s: Selection) => {
    draw('');
    go({ query: { explain: writeSelection({ finding: finding.key, ...s }) } });
  };
  return (
    <>
      <div className="plot-head">
        <span className="muted">
          Duration over time
          {low !== undefined && high !== undefined
            ? `, typical ${duration(low)} – ${duration(high)}`
            : ''}
        </span>
        <span className="push" />
        <ScaleChoice of="durations" />
        <Segmented
          label="Explain"
          choices={drawings}
          chosen={drawing}
          onChoose={(d) => draw(drawing === d ? '' : d)}
        />
        <Segmented label="Color of anomalies" choices={colors} chosen={by} onChoose={choose} />
        <ExportFigure title={`Executions of finding ${finding.finding}, duration over time`} />
      </div>
      <div className="plot-box">
        <Chart
          label={words}
          option={option}
          height="fill"
          onClick={(click) => {
            const p = pointOf(plot, click.data);
            if (p) go({ event: eventPath(finding.program, p.event_id) });
          }}
        />
        {drawing === 'box' && (
          <BoxSelect
            label="Draw a box around executions: x is time, y is duration"
            inset={inset}
            onBox={({ x0, x1, y0, y1 }) =>
              explain({
                from: at(x0),
                to: at(x1),
                min_us: String(Math.floor(took(y1))),
                max_us: String(Math.ceil(took(y0))),
              })
            }
          />
        )}
        {drawing === 'lasso' && (
          <LassoSelect
            label="Draw a lasso around executions: x is time, y is duration. By keyboard, explain the finding and filter by its fields"
            inset={inset}
            onLasso={(corners) =>
              explain({
                lasso: corners.map((c) => `${at(c.x)}:${took(c.y).toFixed(1)}`).join(','),
              })
            }
          />
        )}
      </div>
    </>
  );
}
