SELECT pid, "pattern", host, ranks::VARCHAR AS ranks, hosts::VARCHAR AS hosts, tid, device, "role", peers, weak, ratio, from_s, to_s,
       lost_own_us, lost_caused_us, saved_us, saved_share, confidence, windows::VARCHAR AS windows, functions::VARCHAR AS functions,
       counters::VARCHAR AS counters, twin, sync_share, peer_sync_share
FROM slow_peers
WHERE run = $1
ORDER BY slow_peer
