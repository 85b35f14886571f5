import COpenSSL

/// The record layer of a TLS 1.3 server after the handshake (RFC 8446 §5), in a fraction of the memory of OpenSSL's SSL
/// object.
///
/// Sans-IO. Owns a buffer only for an incomplete record, or for content that did not fit the caller's buffer.
@safe
package final class CompactRecordLayer {
    /// Most records sent under one key: far below the AES-GCM limit of 2^24.5 full-size records (RFC 8446 §5.5).
    package static let recordsPerKey: UInt64 = 1 << 23
    /// Most consecutive records without application data: empty records, KeyUpdate, user_canceled.
    package static let nonDataRecordLimit = 32

    private enum Alert {
        static let closeNotify: UInt8 = 0
        static let userCanceled: UInt8 = 90
    }

    private var reading: RecordKey
    private var writing: RecordKey
    private let recordsPerKey: UInt64
    private var keyUpdates = KeyUpdateParser()
    /// Our sending key must be updated before the next application data.
    private var needsKeyUpdate = false
    private var consecutiveNonDataRecords = 0
    /// An incomplete record.
    private var partial: [UInt8] = []
    /// Decrypted content that did not fit the caller's buffer, from `surplusStart` on.
    private var surplus: [UInt8] = []
    private var surplusStart = 0

    /// - Parameter recordsPerKey: most records sent under one key; tests lower it.
    package init(
        reading: consuming RecordKey, writing: consuming RecordKey,
        recordsPerKey: UInt64 = CompactRecordLayer.recordsPerKey
    ) {
        self.reading = reading
        self.writing = writing
        self.recordsPerKey = max(1, recordsPerKey)
    }

    /// Consumes ciphertext and returns the next event, as `SecureConnection.nextEvent` does. Must not be called after
    /// `.closed`, `.alert` or `.failed`.
    package func nextEvent(
        _ ciphertext: RawSpan, at position: inout Int, plaintext: inout MutableRawSpan
    ) -> RecordEvent? {
        guard plaintext.byteCount > 0 else { return nil }
        if !self.surplus.isEmpty {
            let count = unsafe plaintext.withUnsafeMutableBytes { unsafe self.takeSurplus(into: $0) }
            return .plaintext(count: count)
        }
        do throws(RecordError) {
            while let range = try self.nextRecord(ciphertext, at: &position) {
                let event = try unsafe plaintext.withUnsafeMutableBytes { target throws(RecordError) in
                    try unsafe self.open(ciphertext, range, into: target)
                }
                if let event { return event }
            }
            return nil
        } catch {
            return .failed(error)
        }
    }

    /// Finds the next complete record and moves `position` past it, or buffers an incomplete one.
    /// - Returns: its range in `ciphertext`; an empty range if it is in `partial`; `nil` if more bytes are needed.
    private func nextRecord(_ ciphertext: RawSpan, at position: inout Int) throws(RecordError) -> Range<Int>? {
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
    ) throws(RecordError) -> Range<Int>? {
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

    private static func recordLength(of bytes: [UInt8]) throws(RecordError) -> Int? {
        try unsafe self.recordLength(bytes.span.bytes)
    }

    private static func recordLength(_ bytes: RawSpan) throws(RecordError) -> Int? {
        do throws(RecordViolation) { return try RecordHeader.recordLength(bytes) } catch { throw .peer(error) }
    }

    /// - Returns: `nil` if the record causes no event.
    private func open(
        _ ciphertext: RawSpan, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer
    ) throws(RecordError) -> RecordEvent? {
        guard range.isEmpty else {
            return try unsafe ciphertext.extracting(range).withUnsafeBytes { record throws(RecordError) in
                try unsafe self.open(record, into: target)
            }
        }
        var whole: [UInt8] = []
        swap(&whole, &self.partial)
        return try unsafe whole.span.bytes.withUnsafeBytes { record throws(RecordError) in
            try unsafe self.open(record, into: target)
        }
    }

    private func open(
        _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) throws(RecordError) -> RecordEvent? {
        let inner = record.count - RecordSize.header - RecordSize.tag
        if let start = target.baseAddress, inner <= target.count {
            let count = try unsafe self.reading.open(record, into: start)
            return try unsafe self.process(UnsafeRawBufferPointer(start: start, count: count))
        }
        // Too little room: decrypt into `surplus`.
        var buffer = [UInt8](repeating: 0, count: inner)
        var span = buffer.mutableSpan
        var room = unsafe span.mutableBytes
        let event = try unsafe room.withUnsafeMutableBytes { bytes throws(RecordError) in
            try unsafe self.open(record, into: bytes)
        }
        guard case .plaintext(let count) = event else { return event }
        buffer.removeLast(buffer.count - count)
        self.surplus = buffer
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

    private func process(_ bytes: UnsafeRawBufferPointer) throws(RecordError) -> RecordEvent? {
        do throws(RecordViolation) {
            let inner = try InnerPlaintext(unsafe RawSpan(_unsafeBytes: bytes))
            let content = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes[..<inner.count]))
            switch ContentType(rawValue: inner.type) {
            case .applicationData: return try self.applicationDataReceived(inner.count)
            case .alert: return try self.alertReceived(content)
            case .handshake:
                if let request = try self.handshakeReceived(content) { return self.updateReadingKey(request) }
            case nil: throw .unexpectedContent(type: inner.type)
            }
            return nil
        } catch {
            throw .peer(error)
        }
    }

    private func applicationDataReceived(_ count: Int) throws(RecordViolation) -> RecordEvent? {
        guard !self.keyUpdates.isInsideMessage else { throw .interruptedMessage }
        guard count > 0 else {
            try self.countOverhead()
            return nil
        }
        self.consecutiveNonDataRecords = 0
        return .plaintext(count: count)
    }

    private func alertReceived(_ content: RawSpan) throws(RecordViolation) -> RecordEvent? {
        guard !self.keyUpdates.isInsideMessage else { throw .interruptedMessage }
        guard content.byteCount > 0 else { throw .emptyMessage }
        guard content.byteCount == 2 else { throw .notOneAlert }
        // TLS 1.3 ignores the level (RFC 8446 §6).
        switch content[byte: 1] {
        case Alert.closeNotify: return .closed
        case Alert.userCanceled:
            try self.countOverhead()
            return nil
        case let code: return .alert(code)
        }
    }

    private func handshakeReceived(_ content: RawSpan) throws(RecordViolation) -> KeyUpdateParser.Request? {
        try self.countOverhead()
        return try self.keyUpdates.take(content)
    }

    private func updateReadingKey(_ request: KeyUpdateParser.Request) -> RecordEvent? {
        guard self.reading.update() else { return .failed(.engine) }
        if request == .updateRequested { self.needsKeyUpdate = true }
        return nil
    }

    private func countOverhead() throws(RecordViolation) {
        self.consecutiveNonDataRecords += 1
        guard self.consecutiveNonDataRecords <= Self.nonDataRecordLimit else { throw .tooManyNonDataRecords }
    }

    // MARK: Sending

    /// Encrypts `plaintext` into `output`, in records of up to 2^14 bytes.
    /// - Returns: `false` if OpenSSL lacks memory.
    package func write(_ plaintext: RawSpan, to output: CiphertextBuffer) -> Bool {
        self.consecutiveNonDataRecords = 0
        var start = 0
        while start < plaintext.byteCount {
            let end = min(start + RecordSize.content, plaintext.byteCount)
            if self.needsKeyUpdate || self.writing.sequence >= self.recordsPerKey {
                guard self.updateWritingKey(output) else { return false }
            }
            let content = plaintext.extracting(start..<end)
            guard self.writing.seal(ContentType.applicationData.rawValue, content, to: output) else { return false }
            start = end
        }
        return true
    }

    package func writeCloseNotify(to output: CiphertextBuffer) -> Bool {
        self.write(.alert, [1, Alert.closeNotify], output)
    }

    package func writeAlert(_ code: UInt8, to output: CiphertextBuffer) -> Bool {
        self.write(.alert, [2, code], output)
    }

    /// Sends KeyUpdate(update_not_requested) as the last record under the old key (RFC 8446 §4.6.3).
    private func updateWritingKey(_ output: CiphertextBuffer) -> Bool {
        self.needsKeyUpdate = false
        return self.write(.handshake, [24, 0, 0, 1, 0], output) && self.writing.update()
    }

    private func write(_ type: ContentType, _ content: [UInt8], _ output: CiphertextBuffer) -> Bool {
        unsafe self.writing.seal(type.rawValue, content.span.bytes, to: output)
    }
}

/// The key of one direction, with the sequence number that each nonce is derived from (RFC 8446 §5.2 and §5.3).
@safe
package struct RecordKey: ~Copyable {
    package enum Use: Int32, Sendable {
        case opening = 0
        case sealing = 1
    }

    private static let nonceLength = 12
    /// Layout of `secrets`: the traffic secret, the IV, and the nonce of the current record.
    private static let ivOffset = 48
    private static let nonceOffset = Self.ivOffset + Self.nonceLength

    let suite: RecordSuite
    private let use: Use
    private let context: OpaquePointer
    private let secrets: SecretBytes
    /// Number of records protected with this key.
    package private(set) var sequence: UInt64

    /// - Parameter sequence: number of records that OpenSSL has already protected with this key.
    /// - Returns: `nil` if the secret does not have the length of the suite's hash, or OpenSSL lacks memory.
    package static func make(
        _ suite: RecordSuite, secret: borrowing SecretBytes, use: Use, sequence: UInt64 = 0
    ) -> RecordKey? {
        guard secret.count == suite.secretLength, let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        let key = unsafe RecordKey(suite, secret, use, context, sequence)
        let cipher =
            switch suite {
            case .aes128GCM: unsafe EVP_aes_128_gcm()
            case .aes256GCM: unsafe EVP_aes_256_gcm()
            case .chaCha20Poly1305: unsafe EVP_chacha20_poly1305()
            }
        guard unsafe EVP_CipherInit_ex(context, cipher, nil, nil, nil, use.rawValue) == 1, key.install() else {
            return nil
        }
        return key
    }

    private init(
        _ suite: RecordSuite, _ secret: borrowing SecretBytes, _ use: Use, _ context: OpaquePointer, _ sequence: UInt64
    ) {
        self.suite = suite
        self.use = use
        unsafe self.context = context
        self.secrets = SecretBytes(count: Self.nonceOffset + Self.nonceLength)
        self.sequence = sequence
        unsafe self.secrets.start.copyMemory(from: secret.start, byteCount: min(secret.count, Self.ivOffset))
    }

    deinit {
        unsafe EVP_CIPHER_CTX_free(self.context)
    }

    /// Derives key and IV from the traffic secret.
    private func install() -> Bool {
        let start = unsafe self.secrets.start
        let key = SecretBytes(count: self.suite.keyLength)
        let iv = unsafe start + Self.ivOffset
        guard unsafe KeySchedule.expand(start, self.suite, label: "key", into: key.start, count: key.count),
            unsafe KeySchedule.expand(start, self.suite, label: "iv", into: iv, count: Self.nonceLength)
        else { return false }
        unsafe (start + Self.nonceOffset).copyMemory(from: iv, byteCount: Self.nonceLength)
        let bytes = unsafe key.start.assumingMemoryBound(to: UInt8.self)
        return unsafe EVP_CipherInit_ex(self.context, nil, nil, bytes, nil, self.use.rawValue) == 1
    }

    /// Derives the next traffic secret, key and IV (RFC 8446 §7.2).
    /// - Returns: `false` if OpenSSL lacks memory; the key is then unusable.
    package mutating func update() -> Bool {
        let start = unsafe self.secrets.start
        self.sequence = 0
        return unsafe KeySchedule.expand(
            start, self.suite, label: "traffic upd", into: start, count: self.suite.secretLength) && self.install()
    }

    /// Starts the next record: sets its nonce, and its header as additional authenticated data.
    private mutating func begin(_ header: UnsafePointer<UInt8>) -> Bool {
        let start = unsafe self.secrets.start
        let low = unsafe start.loadUnaligned(fromByteOffset: Self.ivOffset + 4, as: UInt64.self)
        unsafe start.storeBytes(of: low ^ self.sequence.bigEndian, toByteOffset: Self.nonceOffset + 4, as: UInt64.self)
        self.sequence &+= 1
        let nonce = unsafe (start + Self.nonceOffset).assumingMemoryBound(to: UInt8.self)
        var count: Int32 = 0
        return unsafe EVP_CipherInit_ex(self.context, nil, nil, nil, nonce, self.use.rawValue) == 1
            && EVP_CipherUpdate(self.context, nil, &count, header, Int32(RecordSize.header)) == 1
    }

    /// Encrypts one record with at most 2^14 + 238 bytes of content.
    /// - Parameter type: the content type; with 0 the trailing zeros of the content are padding, and the byte before
    ///   them is the type (RFC 8446 §5.4).
    /// - Returns: `false` if OpenSSL lacks memory.
    package mutating func seal(_ type: UInt8, _ content: RawSpan, to output: CiphertextBuffer) -> Bool {
        let length = content.byteCount + 1 + RecordSize.tag
        guard length <= RecordSize.fragment else { return false }
        return unsafe output.extend(by: RecordSize.header + length) { target in
            unsafe content.withUnsafeBytes { unsafe self.seal(type, $0, into: target) }
        }
    }

    /// Encrypts one record into `target`, which has room for header, content, type and tag.
    private mutating func seal(
        _ type: UInt8, _ content: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
    ) -> Bool {
        let record = unsafe target.assumingMemoryBound(to: UInt8.self)
        let length = content.count + 1 + RecordSize.tag
        unsafe record[0] = ContentType.applicationData.rawValue
        unsafe record[1] = 3
        unsafe record[2] = 3
        unsafe record[3] = UInt8(truncatingIfNeeded: length >> 8)
        unsafe record[4] = UInt8(truncatingIfNeeded: length)
        guard unsafe self.begin(record) else { return false }
        var end = unsafe record + RecordSize.header
        var count: Int32 = 0
        if let bytes = content.baseAddress, content.count > 0 {
            let source = unsafe bytes.assumingMemoryBound(to: UInt8.self)
            guard unsafe EVP_CipherUpdate(self.context, end, &count, source, Int32(content.count)) == 1 else {
                return false
            }
            unsafe end += Int(count)
        }
        var last = type
        guard unsafe EVP_CipherUpdate(self.context, end, &count, &last, 1) == 1 else { return false }
        unsafe end += Int(count)
        guard unsafe EVP_CipherFinal_ex(self.context, end, &count) == 1 else { return false }
        return unsafe EVP_CIPHER_CTX_ctrl(self.context, EVP_CTRL_AEAD_GET_TAG, Int32(RecordSize.tag), end) == 1
    }

    /// Decrypts one record into `target`, which has room for everything but header and tag. The contents of `target`
    /// are undefined if this throws.
    /// - Parameter record: a complete record: header and tag at least, at most 2^14 + 256 bytes after the header.
    /// - Returns: the number of bytes written: content, type and padding.
    mutating func open(
        _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
    ) throws(RecordError) -> Int {
        guard let start = record.baseAddress, record.count >= RecordSize.header + RecordSize.tag else { throw .engine }
        let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
        let inner = record.count - RecordSize.header - RecordSize.tag
        let content = unsafe bytes + RecordSize.header
        let tag = unsafe UnsafeMutableRawPointer(mutating: content + inner)
        let output = unsafe target.assumingMemoryBound(to: UInt8.self)
        var count: Int32 = 0
        guard unsafe self.begin(bytes),
            unsafe EVP_CIPHER_CTX_ctrl(self.context, EVP_CTRL_AEAD_SET_TAG, Int32(RecordSize.tag), tag) == 1,
            unsafe inner == 0 || EVP_CipherUpdate(self.context, output, &count, content, Int32(inner)) == 1
        else { throw .engine }
        guard unsafe EVP_CipherFinal_ex(self.context, output + inner, &count) == 1 else { throw .peer(.badRecordMAC) }
        return inner
    }
}

/// The application traffic secrets of a server's handshake, collected from OpenSSL's callbacks for
/// `CompactRecordLayer`. Wiped when the handshake completes.
struct TrafficSecrets: ~Copyable {
    private static let fromClient: StaticString = "CLIENT_TRAFFIC_SECRET_0 "
    private static let fromServer: StaticString = "SERVER_TRAFFIC_SECRET_0 "

    private var client = SecretBytes?.none
    private var server = SecretBytes?.none
    /// Number of records that OpenSSL sent under the application key, which are tickets; `nil` until our Finished is
    /// sent.
    private var written: UInt64?

    /// Stores the secret of a key log line if it is one of the two.
    mutating func keyLogged(_ line: UnsafePointer<CChar>) {
        if let secret = unsafe Self.secret(in: line, behind: Self.fromClient) {
            self.client = consume secret
        } else if let secret = unsafe Self.secret(in: line, behind: Self.fromServer) {
            self.server = consume secret
        }
    }

    /// Counts a record whose header OpenSSL has written.
    mutating func recordWritten() {
        self.written? += 1
    }

    /// From here on records are protected with the application key (RFC 8446 §4.4.4).
    mutating func finishedWritten() {
        self.written = 0
    }

    /// - Returns: `nil` if a secret is missing, or OpenSSL lacks memory.
    mutating func makeRecords(_ suite: RecordSuite) -> CompactRecordLayer? {
        let client = self.client.take()
        let server = self.server.take()
        guard let client, let server, let written = self.written,
            let reading = RecordKey.make(suite, secret: client, use: .opening),
            let writing = RecordKey.make(suite, secret: server, use: .sealing, sequence: written)
        else { return nil }
        return CompactRecordLayer(reading: reading, writing: writing)
    }

    /// The secret of a line "LABEL client_random secret" in hexadecimal; `nil` for another label.
    private static func secret(in line: UnsafePointer<CChar>, behind label: StaticString) -> SecretBytes? {
        let text = unsafe UnsafeBufferPointer(start: line, count: strlen(line))
        let labelCount = label.utf8CodeUnitCount
        let start = labelCount + 2 * Int(SSL3_RANDOM_SIZE) + 1
        guard text.count > start, unsafe memcmp(line, label.utf8Start, labelCount) == 0 else { return nil }
        let secret = SecretBytes(count: (text.count - start) / 2)
        for index in 0..<secret.count {
            let offset = start + 2 * index
            guard let high = unsafe Self.digit(text[offset]), let low = unsafe Self.digit(text[offset + 1]) else {
                return nil
            }
            unsafe secret.start.storeBytes(of: high << 4 | low, toByteOffset: index, as: UInt8.self)
        }
        return secret
    }

    private static func digit(_ character: CChar) -> UInt8? {
        switch UInt8(bitPattern: character) {
        case let byte where (0x30...0x39).contains(byte): byte - 0x30
        case let byte where (0x61...0x66).contains(byte): byte - 0x61 + 10
        case let byte where (0x41...0x46).contains(byte): byte - 0x41 + 10
        default: nil
        }
    }
}

/// Key derivation from traffic secrets in TLS 1.3 (RFC 8446 §7.1 to §7.3).
package enum KeySchedule {
    /// HKDF-Expand-Label without a context, for results no longer than the suite's hash: one block of HMAC.
    /// - Parameter target: receives `count` bytes; may be the secret itself.
    /// - Returns: `false` if OpenSSL lacks memory.
    static func expand(
        _ secret: UnsafeRawPointer, _ suite: RecordSuite, label: StaticString, into target: UnsafeMutableRawPointer,
        count: Int
    ) -> Bool {
        guard count <= suite.secretLength else { return false }
        let hash = unsafe suite == .aes256GCM ? EVP_sha384() : EVP_sha256()
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(EVP_MAX_MD_SIZE)) { block in
            let succeeded = unsafe Self.withDescription(of: label, count: count) { description in
                unsafe HMAC(
                    hash, secret, Int32(suite.secretLength), description.baseAddress, description.count,
                    block.baseAddress, nil) != nil
            }
            if succeeded, let start = block.baseAddress { unsafe target.copyMemory(from: start, byteCount: count) }
            unsafe OPENSSL_cleanse(block.baseAddress, block.count)
            return succeeded
        }
    }

    /// The HkdfLabel of §7.1, followed by the counter of HKDF's first and only block (RFC 5869 §2.3).
    private static func withDescription<R>(
        of label: StaticString, count: Int, _ body: (UnsafeMutableBufferPointer<UInt8>) -> R
    ) -> R {
        let prefix: StaticString = "tls13 "
        let length = prefix.utf8CodeUnitCount + label.utf8CodeUnitCount
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length + 5) { bytes in
            unsafe bytes[0] = 0
            unsafe bytes[1] = UInt8(truncatingIfNeeded: count)
            unsafe bytes[2] = UInt8(truncatingIfNeeded: length)
            var end = 3
            for text in [prefix, label] {
                text.withUTF8Buffer { units in
                    for index in 0..<units.count { unsafe bytes[end + index] = unsafe units[index] }
                }
                end += text.utf8CodeUnitCount
            }
            unsafe bytes[end] = 0
            unsafe bytes[end + 1] = 1
            return unsafe body(bytes)
        }
    }

    /// HKDF-Expand-Label for test vectors.
    package static func expand(_ secret: [UInt8], _ suite: RecordSuite, label: StaticString, count: Int) -> [UInt8]? {
        guard secret.count == suite.secretLength, count >= 0, count <= suite.secretLength else { return nil }
        let from = SecretBytes(secret)
        let to = SecretBytes(count: count)
        guard unsafe Self.expand(from.start, suite, label: label, into: to.start, count: count) else { return nil }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: to.start, count: count))
    }
}

/// Secret bytes, wiped before their memory is freed.
@safe
package struct SecretBytes: ~Copyable {
    let start: UnsafeMutableRawPointer
    let count: Int

    /// `count` zeros, at least one.
    init(count: Int) {
        unsafe self.start = UnsafeMutableRawPointer.allocate(byteCount: max(1, count), alignment: 8)
        self.count = count
        unsafe self.start.initializeMemory(as: UInt8.self, repeating: 0, count: count)
    }

    package init(_ bytes: [UInt8]) {
        self.init(count: bytes.count)
        unsafe bytes.withUnsafeBytes { source in
            guard let from = source.baseAddress else { return }
            unsafe self.start.copyMemory(from: from, byteCount: source.count)
        }
    }

    deinit {
        unsafe OPENSSL_cleanse(self.start, self.count)
        unsafe self.start.deallocate()
    }
}
