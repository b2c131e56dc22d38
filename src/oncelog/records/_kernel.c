/* Goes over the records of one record batch: the walk of walk.py and the scan of scan.py, which stand there in Python with the
 * words; tests hold the two together.
 *
 * The bytes come from strangers. Every read goes through `read_varint` or is bounded by a length that was compared with the bytes
 * left (`end - at`) before it is used; nothing is allocated but the answer. A cursor never passes `end`.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum fault { NONE, CUT_OFF, BAD_VARINT, LENGTH_MISMATCH, OFFSET_MISMATCH, SURPLUS };

/* A zigzag integer of at most `bits` (32 or 64) bits. False if it is cut off by `end` or is longer than its kind. */
static int read_varint(const uint8_t **at, const uint8_t *end, int bits, int64_t *value)
{
    uint64_t raw = 0;
    const uint8_t *cursor = *at;
    for (int shift = 0; shift < bits; shift += 7) {
        if (cursor >= end)
            return 0;
        uint8_t byte = *cursor++;
        uint64_t low = byte & 0x7f;
        if (bits - shift < 7 && low >> (bits - shift))
            return 0;
        raw |= low << shift;
        if (byte < 0x80) {
            *at = cursor;
            *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return 1;
        }
    }
    return 0;
}

/* A length of at least `least` (-1 where null is allowed) and the bytes it announces; `length` is -1 for null. */
static enum fault skip_bytes(const uint8_t **at, const uint8_t *end, int64_t least, int64_t *length)
{
    if (!read_varint(at, end, 32, length))
        return BAD_VARINT;
    if (*length < least || *length > end - *at)
        return LENGTH_MISMATCH;
    if (*length > 0)
        *at += *length;
    return NONE;
}

/* Key, value and headers, which must end at `end`. */
static enum fault walk_fields(const uint8_t *at, const uint8_t *end, int *null_key)
{
    int64_t length, headers;
    enum fault fault = skip_bytes(&at, end, -1, &length);
    if (fault)
        return fault;
    *null_key = length < 0;
    if ((fault = skip_bytes(&at, end, -1, &length)))
        return fault;
    if (!read_varint(&at, end, 32, &headers))
        return BAD_VARINT;
    if (headers < 0 || headers > (end - at) / 2)
        return LENGTH_MISMATCH;
    while (headers-- > 0) {
        if ((fault = skip_bytes(&at, end, 0, &length)))
            return fault;
        if ((fault = skip_bytes(&at, end, -1, &length)))
            return fault;
    }
    return at == end ? NONE : LENGTH_MISMATCH;
}

struct walked {
    Py_ssize_t index, first_null_key;
    int64_t least, greatest;
};

static enum fault walk(const uint8_t *at, const uint8_t *end, Py_ssize_t count, struct walked *walked)
{
    for (; walked->index < count; walked->index++) {
        int64_t length, timestamp_delta, offset_delta;
        int null_key = 0;
        if (!read_varint(&at, end, 32, &length) || length < 0 || length > end - at)
            return CUT_OFF;
        const uint8_t *record_end = at + length;
        if (length < 1)
            return BAD_VARINT;
        at++; /* attributes: no bit has a meaning yet */
        if (!read_varint(&at, record_end, 64, &timestamp_delta) || !read_varint(&at, record_end, 32, &offset_delta))
            return BAD_VARINT;
        if (offset_delta != walked->index)
            return OFFSET_MISMATCH;
        enum fault fault = walk_fields(at, record_end, &null_key);
        if (fault)
            return fault;
        if (null_key && walked->first_null_key < 0)
            walked->first_null_key = walked->index;
        if (walked->index == 0)
            walked->least = walked->greatest = timestamp_delta;
        else if (timestamp_delta > walked->greatest)
            walked->greatest = timestamp_delta;
        else if (timestamp_delta < walked->least)
            walked->least = timestamp_delta;
        at = record_end;
    }
    return at == end ? NONE : SURPLUS;
}

static PyObject *walk_records(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 4) {
        PyErr_SetString(PyExc_TypeError, "walk_records(data, position, end, count)");
        return NULL;
    }
    Py_ssize_t position = PyLong_AsSsize_t(arguments[1]);
    Py_ssize_t end = PyLong_AsSsize_t(arguments[2]);
    Py_ssize_t count = PyLong_AsSsize_t(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    if (position < 0 || position > end || end > data.len) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_ValueError, "position and end must lie inside the data");
        return NULL;
    }
    struct walked walked = {0, -1, 0, 0};
    const uint8_t *bytes = data.buf;
    enum fault fault = walk(bytes + position, bytes + end, count, &walked);
    PyBuffer_Release(&data);
    return Py_BuildValue("(innLL)", (int)fault, walked.index, walked.first_null_key, (long long)walked.least,
                         (long long)walked.greatest);
}

/* The tuple scan.py describes, for the record at `*at`, which is then behind it. NULL without an error set if it is none. */
static PyObject *scan_record(const uint8_t *start, const uint8_t **at, const uint8_t *end)
{
    int64_t length, timestamp_delta, offset_delta, key_length, value_length;
    const uint8_t *record = *at;
    if (!read_varint(at, end, 32, &length) || length < 1 || length > end - *at)
        return NULL;
    const uint8_t *cursor = *at + 1, *record_end = *at + length;
    if (!read_varint(&cursor, record_end, 64, &timestamp_delta))
        return NULL;
    const uint8_t *behind_timestamp = cursor;
    if (!read_varint(&cursor, record_end, 32, &offset_delta) || skip_bytes(&cursor, record_end, -1, &key_length))
        return NULL;
    const char *key_end = (const char *)cursor;
    if (skip_bytes(&cursor, record_end, -1, &value_length))
        return NULL;
    *at = record_end;
    PyObject *key = key_length < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(key_end - key_length, key_length);
    if (key == NULL)
        return NULL;
    return Py_BuildValue("(nnnLLNO)", record - start, record_end - start, behind_timestamp - start, (long long)offset_delta,
                         (long long)timestamp_delta, key, value_length < 0 ? Py_True : Py_False);
}

static PyObject *scan_records(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 3) {
        PyErr_SetString(PyExc_TypeError, "scan_records(payload, position, count)");
        return NULL;
    }
    Py_ssize_t position = PyLong_AsSsize_t(arguments[1]);
    Py_ssize_t count = PyLong_AsSsize_t(arguments[2]);
    Py_buffer payload;
    if (PyErr_Occurred() || PyObject_GetBuffer(arguments[0], &payload, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *found = NULL;
    if (position < 0 || position > payload.len)
        PyErr_SetString(PyExc_ValueError, "the position must lie inside the payload");
    else
        found = PyList_New(0);
    const uint8_t *start = payload.buf, *end = start + payload.len, *at = start + position;
    while (found != NULL && count-- > 0) {
        PyObject *record = scan_record(start, &at, end);
        if (record == NULL || PyList_Append(found, record) < 0)
            Py_CLEAR(found);
        Py_XDECREF(record);
    }
    PyBuffer_Release(&payload);
    if (found == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return found;
}

static PyMethodDef methods[] = {
    {"walk_records", (PyCFunction)(void (*)(void))walk_records, METH_FASTCALL,
     "walk_records(data, position, end, count) -> (fault, index, first_null_key, least, greatest)"},
    {"scan_records", (PyCFunction)(void (*)(void))scan_records, METH_FASTCALL,
     "scan_records(payload, position, count) -> [(start, end, behind_timestamp, offset_delta, timestamp_delta, key, tombstone)]"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
