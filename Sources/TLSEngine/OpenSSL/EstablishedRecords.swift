/// The record protocol of a TLS 1.3 server behind the handshake (RFC 8446 §5): everything that such a connection still
/// needs, in a fraction of the memory that OpenSSL keeps for it.
///
/// Sans IO, and without a buffer unless a record has come in part, or its content did not fit where it was to go.
@safe
package final class EstablishedRecords {
    /// Records of data under one key, at most: far below the 2^24.5 of full length that AES-GCM bears (RFC 8446 §5.5).
    package static let recordsPerKey: UInt64 = 1 << 23
    /// Records in succession, in both directions, that carry no data: empty ones, key updates, user_canceled.
    package static let overheadLimit = 32

    enum Alert {
        static let closeNotify: UInt8 = 0
        static let userCanceled: UInt8 = 90
    }

    private var reading: RecordKey
    var writing: RecordKey
    let recordsPerKey: UInt64
    private var messages = KeyUpdateReader()
    /// Our key must change before the next data.
    var owesKeyUpdate = false
    var overhead = 0
    /// The beginning of a record whose rest has not come.
    private var partial: [UInt8] = []
    /// Content that did not fit, from `surplusStart` on.
    private var surplus: [UInt8] = []
    private var surplusStart = 0

    /// - Parameter recordsPerKey: how many records we write under one key; less only to see it change.
    package init(
        reading: consuming RecordKey, writing: consuming RecordKey,
        recordsPerKey: UInt64 = EstablishedRecords.recordsPerKey
    ) {
        self.reading = reading
        self.writing = writing
        self.recordsPerKey = max(1, recordsPerKey)
    }

    /// Takes ciphertext and gives the next event; the same promises as `SecureConnection.nextEvent`. After `.closed`,
    /// `.alert` or `.failed` it must not be called again.
    package func nextEvent(
        _ ciphertext: RawSpan, at position: inout Int, plaintext: inout MutableRawSpan
    ) -> RecordEvent? {
        guard plaintext.byteCount > 0 else { return nil }
        if !self.surplus.isEmpty {
            let count = unsafe plaintext.withUnsafeMutableBytes { unsafe self.takeSurplus(into: $0) }
            return .plaintext(count: count)
        }
        do throws(RecordFault) {
            while let range = try self.nextRecord(ciphertext, at: &position) {
                let event = try unsafe plaintext.withUnsafeMutableBytes { target throws(RecordFault) in
                    try unsafe self.open(ciphertext, range, into: target)
                }
                if let event { return event }
            }
            return nil
        } catch {
            return .failed(error)
        }
    }

    /// Finds the next whole record and moves `position` behind it, or keeps what there is of it.
    /// - Returns: where it is in `ciphertext`; empty if it is all of `partial`; `nil` if more must come.
    private func nextRecord(_ ciphertext: RawSpan, at position: inout Int) throws(RecordFault) -> Range<Int>? {
        let start = max(0, min(position, ciphertext.byteCount))
        guard self.partial.isEmpty else { return try self.complete(ciphertext, from: start, &position) }
        let fresh = ciphertext.extracting(start..<ciphertext.byteCount)
        if let length = try Self.recordLength(fresh), length <= fresh.byteCount {
            position = start + length
            return start..<position
        }
        position = ciphertext.byteCount
        unsafe fresh.withUnsafeBytes { unsafe self.partial.append(contentsOf: $0) }
        return nil
    }

    private func complete(
        _ ciphertext: RawSpan, from start: Int, _ position: inout Int
    ) throws(RecordFault) -> Range<Int>? {
        position = start
        self.extendPartial(to: RecordSize.header, ciphertext, &position)
        guard let length = try Self.recordLength(of: self.partial) else { return nil }
        self.extendPartial(to: length, ciphertext, &position)
        return self.partial.count == length ? position..<position : nil
    }

    private func extendPartial(to length: Int, _ ciphertext: RawSpan, _ position: inout Int) {
        let count = min(length - self.partial.count, ciphertext.byteCount - position)
        guard count > 0 else { return }
        let bytes = ciphertext.extracting(position..<(position + count))
        unsafe bytes.withUnsafeBytes { unsafe self.partial.append(contentsOf: $0) }
        position += count
    }

    private static func recordLength(of bytes: [UInt8]) throws(RecordFault) -> Int? {
        try unsafe self.recordLength(bytes.span.bytes)
    }

    private static func recordLength(_ bytes: RawSpan) throws(RecordFault) -> Int? {
        do throws(RecordViolation) { return try RecordHeader.recordLength(bytes) } catch { throw .peer(error) }
    }

    /// - Returns: `nil` if the record leads to no event.
    private func open(
        _ ciphertext: RawSpan, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer
    ) throws(RecordFault) -> RecordEvent? {
        guard range.isEmpty else {
            return try unsafe ciphertext.extracting(range).withUnsafeBytes { record throws(RecordFault) in
                try unsafe self.open(record, into: target)
            }
        }
        var whole: [UInt8] = []
        swap(&whole, &self.partial)
        return try unsafe whole.span.bytes.withUnsafeBytes { record throws(RecordFault) in
            try unsafe self.open(record, into: target)
        }
    }

    private func open(
        _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) throws(RecordFault) -> RecordEvent? {
        let inner = record.count - RecordSize.header - RecordSize.tag
        if let start = target.baseAddress, inner <= target.count {
            let count = try unsafe self.reading.open(record, into: start)
            return try unsafe self.judge(UnsafeRawBufferPointer(start: start, count: count))
        }
        // Where there is too little room, what comes out has to wait somewhere.
        var wide = [UInt8](repeating: 0, count: inner)
        var span = wide.mutableSpan
        var room = unsafe span.mutableBytes
        let event = try unsafe room.withUnsafeMutableBytes { bytes throws(RecordFault) in
            try unsafe self.open(record, into: bytes)
        }
        guard case .plaintext(let count) = event else { return event }
        wide.removeLast(wide.count - count)
        self.surplus = wide
        let first = unsafe self.takeSurplus(into: target)
        return .plaintext(count: first)
    }

    private func takeSurplus(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, self.surplus.count - self.surplusStart)
        let range = self.surplusStart..<(self.surplusStart + count)
        unsafe self.surplus[range].withUnsafeBytes { unsafe target.copyMemory(from: $0) }
        self.surplusStart += count
        if self.surplusStart == self.surplus.count {
            self.surplus = []
            self.surplusStart = 0
        }
        return count
    }

    private func judge(_ bytes: UnsafeRawBufferPointer) throws(RecordFault) -> RecordEvent? {
        do throws(RecordViolation) {
            let inner = try InnerPlaintext(unsafe RawSpan(_unsafeBytes: bytes))
            let content = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes[..<inner.count]))
            switch ContentType(rawValue: inner.type) {
            case .applicationData: return try self.received(inner.count)
            case .alert: return try self.alerted(content)
            case .handshake: if let request = try self.message(content) { return self.updateReadingKey(request) }
            case nil: throw .unexpectedContent(type: inner.type)
            }
            return nil
        } catch {
            throw .peer(error)
        }
    }

    private func received(_ count: Int) throws(RecordViolation) -> RecordEvent? {
        guard !self.messages.isAmidMessage else { throw .interruptedMessage }
        guard count > 0 else {
            try self.countOverhead()
            return nil
        }
        self.overhead = 0
        return .plaintext(count: count)
    }

    private func alerted(_ content: RawSpan) throws(RecordViolation) -> RecordEvent? {
        guard !self.messages.isAmidMessage else { throw .interruptedMessage }
        guard content.byteCount > 0 else { throw .emptyMessage }
        guard content.byteCount == 2 else { throw .notOneAlert }
        // The level says nothing in TLS 1.3 (RFC 8446 §6).
        switch content[byte: 1] {
        case Alert.closeNotify: return .closed
        case Alert.userCanceled:
            try self.countOverhead()
            return nil
        case let code: return .alert(code)
        }
    }

    private func message(_ content: RawSpan) throws(RecordViolation) -> KeyUpdateReader.Request? {
        try self.countOverhead()
        return try self.messages.take(content)
    }

    private func updateReadingKey(_ request: KeyUpdateReader.Request) -> RecordEvent? {
        guard self.reading.update() else { return .failed(.engine) }
        if request == .answer { self.owesKeyUpdate = true }
        return nil
    }

    private func countOverhead() throws(RecordViolation) {
        self.overhead += 1
        guard self.overhead <= Self.overheadLimit else { throw .nothingButOverhead }
    }
}
