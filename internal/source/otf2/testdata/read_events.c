/* Reads the events of an OTF2 archive with the reference library, for BenchmarkAgainstReferenceLibrary.
 *
 * Usage: read_events ANCHOR local|global
 *
 * For each line on standard input it opens the archive, reads all definitions and events with callbacks, closes the archive, and
 * prints the processor time in nanoseconds, the number of events, and a checksum. "local" reads one location after another,
 * "global" all in order of time. */
#include <otf2/otf2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* totals are what the callbacks of events add to. */
struct totals {
    uint64_t events;
    uint64_t sum;
};

/* locations are the numbers of all locations. */
struct locations {
    uint64_t  count;
    uint64_t  room;
    uint64_t* ids;
};

static void check(OTF2_ErrorCode code, const char* what)
{
    if (code != OTF2_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, OTF2_Error_GetDescription(code));
        exit(1);
    }
}

static OTF2_CallbackCode on_location(void* user, OTF2_LocationRef id, OTF2_StringRef name, OTF2_LocationType type,
                                     uint64_t events, OTF2_LocationGroupRef group)
{
    struct locations* l = user;
    if (l->count == l->room) {
        l->room = 2 * l->room + 16;
        l->ids = realloc(l->ids, l->room * sizeof *l->ids);
        if (l->ids == NULL)
            abort();
    }
    l->ids[l->count++] = id;
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode add(void* user, OTF2_TimeStamp time, uint64_t value)
{
    struct totals* t = user;
    t->events++;
    t->sum += time + value;
    return OTF2_CALLBACK_SUCCESS;
}

static uint64_t last(uint8_t n, const OTF2_MetricValue* values)
{
    return n > 0 ? values[n - 1].unsigned_int : 0;
}

/* The callbacks of the two kinds of readers differ in one parameter. */
#define COMMON OTF2_LocationRef location, OTF2_TimeStamp time
#define GLOBAL(name, value, ...)                                                                    \
    static OTF2_CallbackCode global_##name(COMMON, void* user, OTF2_AttributeList* list, ##__VA_ARGS__) \
    {                                                                                               \
        return add(user, time, value);                                                              \
    }
#define LOCAL(name, value, ...)                                                                                        \
    static OTF2_CallbackCode local_##name(COMMON, uint64_t position, void* user, OTF2_AttributeList* list, ##__VA_ARGS__) \
    {                                                                                                                  \
        return add(user, time, value);                                                                                 \
    }
#define BOTH(name, value, ...)           \
    GLOBAL(name, value, ##__VA_ARGS__)   \
    LOCAL(name, value, ##__VA_ARGS__)

#define MESSAGE uint32_t partner, OTF2_CommRef comm, uint32_t tag, uint64_t bytes
BOTH(enter, region, OTF2_RegionRef region)
BOTH(leave, region, OTF2_RegionRef region)
BOTH(send, bytes, MESSAGE)
BOTH(isend, bytes, MESSAGE, uint64_t request)
BOTH(isend_complete, request, uint64_t request)
BOTH(irecv_request, request, uint64_t request)
BOTH(recv, bytes, MESSAGE)
BOTH(irecv, bytes, MESSAGE, uint64_t request)
BOTH(collective_begin, 0)
BOTH(collective_end, sent + received, OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t received)
BOTH(metric, last(n, values), OTF2_MetricRef metric, uint8_t n, const OTF2_Type* types, const OTF2_MetricValue* values)
BOTH(flush, stop, OTF2_TimeStamp stop)
BOTH(put, bytes, OTF2_RmaWinRef window, uint32_t remote, uint64_t bytes, uint64_t matching)
BOTH(get, bytes, OTF2_RmaWinRef window, uint32_t remote, uint64_t bytes, uint64_t matching)
BOTH(rma_complete, matching, OTF2_RmaWinRef window, uint64_t matching)
BOTH(program_begin, n, OTF2_StringRef name, uint32_t n, const OTF2_StringRef* arguments)
BOTH(program_end, (uint64_t)status, int64_t status)
BOTH(unknown, 0)

#define REGISTER(kind, prefix)                                                                        \
    do {                                                                                              \
        check(OTF2_##kind##Callbacks_SetEnterCallback(c, prefix##_enter), "enter");                   \
        check(OTF2_##kind##Callbacks_SetLeaveCallback(c, prefix##_leave), "leave");                   \
        check(OTF2_##kind##Callbacks_SetMpiSendCallback(c, prefix##_send), "send");                   \
        check(OTF2_##kind##Callbacks_SetMpiIsendCallback(c, prefix##_isend), "isend");                \
        check(OTF2_##kind##Callbacks_SetMpiIsendCompleteCallback(c, prefix##_isend_complete), "isend complete"); \
        check(OTF2_##kind##Callbacks_SetMpiIrecvRequestCallback(c, prefix##_irecv_request), "irecv request");    \
        check(OTF2_##kind##Callbacks_SetMpiRecvCallback(c, prefix##_recv), "recv");                   \
        check(OTF2_##kind##Callbacks_SetMpiIrecvCallback(c, prefix##_irecv), "irecv");                \
        check(OTF2_##kind##Callbacks_SetMpiCollectiveBeginCallback(c, prefix##_collective_begin), "begin");      \
        check(OTF2_##kind##Callbacks_SetMpiCollectiveEndCallback(c, prefix##_collective_end), "end"); \
        check(OTF2_##kind##Callbacks_SetMetricCallback(c, prefix##_metric), "metric");                \
        check(OTF2_##kind##Callbacks_SetBufferFlushCallback(c, prefix##_flush), "flush");             \
        check(OTF2_##kind##Callbacks_SetRmaPutCallback(c, prefix##_put), "put");                      \
        check(OTF2_##kind##Callbacks_SetRmaGetCallback(c, prefix##_get), "get");                      \
        check(OTF2_##kind##Callbacks_SetRmaOpCompleteBlockingCallback(c, prefix##_rma_complete), "complete");    \
        check(OTF2_##kind##Callbacks_SetProgramBeginCallback(c, prefix##_program_begin), "program begin");       \
        check(OTF2_##kind##Callbacks_SetProgramEndCallback(c, prefix##_program_end), "program end");  \
        check(OTF2_##kind##Callbacks_SetUnknownCallback(c, prefix##_unknown), "unknown");             \
    } while (0)

/* read_all_locally reads one location after another. */
static void read_all_locally(OTF2_Reader* reader, const struct locations* l, struct totals* t)
{
    OTF2_EvtReaderCallbacks* c = OTF2_EvtReaderCallbacks_New();
    REGISTER(EvtReader, local);
    for (uint64_t i = 0; i < l->count; i++) {
        OTF2_EvtReader* events = OTF2_Reader_GetEvtReader(reader, l->ids[i]);
        uint64_t        n = 0;
        if (events == NULL)
            continue; /* a location without events */
        check(OTF2_Reader_RegisterEvtCallbacks(reader, events, c, t), "register");
        check(OTF2_Reader_ReadAllLocalEvents(reader, events, &n), "read events");
        check(OTF2_Reader_CloseEvtReader(reader, events), "close events");
    }
    OTF2_EvtReaderCallbacks_Delete(c);
}

/* read_all_globally reads all locations in order of time. */
static void read_all_globally(OTF2_Reader* reader, const struct locations* l, struct totals* t)
{
    OTF2_GlobalEvtReaderCallbacks* c = OTF2_GlobalEvtReaderCallbacks_New();
    uint64_t                       n = 0;
    REGISTER(GlobalEvtReader, global);
    for (uint64_t i = 0; i < l->count; i++)
        OTF2_Reader_GetEvtReader(reader, l->ids[i]);
    OTF2_GlobalEvtReader* events = OTF2_Reader_GetGlobalEvtReader(reader);
    check(OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, c, t), "register");
    check(OTF2_Reader_ReadAllGlobalEvents(reader, events, &n), "read events");
    check(OTF2_Reader_CloseGlobalEvtReader(reader, events), "close events");
    OTF2_GlobalEvtReaderCallbacks_Delete(c);
}

static struct totals read_archive(const char* anchor, int global)
{
    struct totals    t = {0, 0};
    struct locations l = {0, 0, NULL};
    uint64_t         n = 0;
    OTF2_Reader*     reader = OTF2_Reader_Open(anchor);
    if (reader == NULL)
        exit(1);
    check(OTF2_Reader_SetSerialCollectiveCallbacks(reader), "serial");
    OTF2_GlobalDefReader*          definitions = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks* c = OTF2_GlobalDefReaderCallbacks_New();
    check(OTF2_GlobalDefReaderCallbacks_SetLocationCallback(c, on_location), "location");
    check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, c, &l), "register");
    OTF2_GlobalDefReaderCallbacks_Delete(c);
    check(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &n), "read definitions");
    for (uint64_t i = 0; i < l.count; i++)
        check(OTF2_Reader_SelectLocation(reader, l.ids[i]), "select");
    int local = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS; /* these files may be missing */
    check(OTF2_Reader_OpenEvtFiles(reader), "open events");
    for (uint64_t i = 0; local && i < l.count; i++) {
        OTF2_DefReader* d = OTF2_Reader_GetDefReader(reader, l.ids[i]);
        if (d == NULL)
            continue;
        check(OTF2_Reader_ReadAllLocalDefinitions(reader, d, &n), "read local definitions");
        check(OTF2_Reader_CloseDefReader(reader, d), "close local definitions");
    }
    if (local)
        check(OTF2_Reader_CloseDefFiles(reader), "close definitions");
    (global ? read_all_globally : read_all_locally)(reader, &l, &t);
    check(OTF2_Reader_CloseEvtFiles(reader), "close event files");
    check(OTF2_Reader_Close(reader), "close");
    free(l.ids);
    return t;
}

int main(int argc, char** argv)
{
    char line[16];
    if (argc != 3) {
        fprintf(stderr, "usage: %s ANCHOR local|global\n", argv[0]);
        return 2;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct timespec from, to;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        struct totals t = read_archive(argv[1], strcmp(argv[2], "global") == 0);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        printf("%lld %llu %llx\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec,
               (unsigned long long)t.events, (unsigned long long)t.sum);
        fflush(stdout);
    }
    return 0;
}
