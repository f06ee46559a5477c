// Package conformance holds the tests that all formats give the same result: they write one program in each format
// that Chimbuko reads, and compare its calls, messages, launches, collective operations and findings.
//
// Formats do not have everything, so that the tests leave out what is missing:
//
//   - Kineto has no point-to-point messages and no hosts.
//   - Exports of Nsight Systems have messages only in calls of MPI, which the programs here do not have by their names; the tests of
//     package nsight have them. Threads are numbered as they appear.
//   - rocpd has no messages. Its times count from the start of the host, so that those of different hosts are related only by the
//     assumption that their first events are simultaneous.
//   - Logs of NCCL Inspector have only collective operations, and the time between them: no calls of the program, no launches and no
//     kernels. Without verbose logs, operations have durations, but no times.
//   - No record of OTF2 is a launch; the tests of package otf2 have the ways in which programs record them.
package conformance
