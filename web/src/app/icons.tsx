import type { ReactNode } from 'react';

// Line icons of 20 × 20 pixels in the text color.

function Icon(props: { children: ReactNode }) {
  return (
    <svg
      width="20"
      height="20"
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {props.children}
    </svg>
  );
}

export const OverviewIcon = () => (
  <Icon>
    <path d="M3 11.5h3l2-6 4 10 2.2-6 1 2H17" />
  </Icon>
);

export const FindingsIcon = () => (
  <Icon>
    <path d="M3 5h9M3 10h7M3 15h5M15 5v6M15 14.5v.5" />
  </Icon>
);

export const EvidenceIcon = () => (
  <Icon>
    <path d="M3 4.5h14M3 8.5h9M5 12.5h5M5 16.5h2" />
    <circle cx="14" cy="13" r="2.6" />
    <path d="m16 15 2 2" />
  </Icon>
);

export const FunctionsIcon = () => (
  <Icon>
    <path d="M3 16h14v-3.4H3zM4.5 12.6v-3.4h8v3.4M6 9.2V5.8h4v3.4M14.5 12.6v-3.4H17" />
  </Icon>
);

export const PipelineIcon = () => (
  <Icon>
    <circle cx="4.5" cy="10" r="1.8" />
    <circle cx="15.5" cy="5" r="1.8" />
    <circle cx="15.5" cy="15" r="1.8" />
    <path d="M6.3 10h2.2c2.5 0 2-5 5.2-5M8.5 10c2.5 0 2 5 5.2 5" />
  </Icon>
);

export const CompareIcon = () => (
  <Icon>
    <path d="M10 3v14M8 6H3M8 10H5M8 14H4M12 6h3M12 10h5M12 14h2" />
  </Icon>
);

export const RanksIcon = () => (
  <Icon>
    <path d="M3 4h3v3H3zM8.5 4h3v3h-3zM14 4h3v3h-3zM3 9h3v3H3zM14 9h3v3h-3zM3 14h3v3H3zM8.5 14h3v3h-3zM14 14h3v3h-3z" />
    <path d="M8.5 9h3v3h-3z" fill="currentColor" />
  </Icon>
);

export const GpusIcon = () => (
  <Icon>
    <path d="M5 5h10v10H5zM8 8h4v4H8zM7.5 2.5V5M12.5 2.5V5M7.5 15v2.5M12.5 15v2.5M2.5 7.5H5M2.5 12.5H5M15 7.5h2.5M15 12.5h2.5" />
  </Icon>
);

export const SunIcon = () => (
  <Icon>
    <circle cx="10" cy="10" r="3.2" />
    <path d="M10 2.5v1.7M10 15.8v1.7M2.5 10h1.7M15.8 10h1.7M4.7 4.7l1.2 1.2M14.1 14.1l1.2 1.2M15.3 4.7l-1.2 1.2M5.9 14.1l-1.2 1.2" />
  </Icon>
);

export const MoonIcon = () => (
  <Icon>
    <path d="M16.5 11.8A7 7 0 0 1 8.2 3.5a7 7 0 1 0 8.3 8.3z" />
  </Icon>
);

export const PauseIcon = () => (
  <Icon>
    <path d="M7 4.5v11M13 4.5v11" />
  </Icon>
);

export const PlayIcon = () => (
  <Icon>
    <path d="M6.5 4.5v11l9-5.5z" />
  </Icon>
);

export const SearchIcon = () => (
  <Icon>
    <circle cx="9" cy="9" r="5" />
    <path d="m13 13 4 4" />
  </Icon>
);

export const TimelineIcon = () => (
  <Icon>
    <path d="M3 5.5h5M10 5.5h7M3 10h8M13 10h4M3 14.5h3M8 14.5h9" />
  </Icon>
);

export const SqlIcon = () => (
  <Icon>
    <path d="M3 5.5h14v9H3zM6 8.5l2 1.5-2 1.5M10 12h3.5" />
  </Icon>
);

export const ShareIcon = () => (
  <Icon>
    <path d="M10 12.5V3M6.5 6.5 10 3l3.5 3.5M4 10.5v6h12v-6" />
  </Icon>
);

export const ViewsIcon = () => (
  <Icon>
    <path d="M5.5 3h9v14L10 13.5 5.5 17z" />
  </Icon>
);
