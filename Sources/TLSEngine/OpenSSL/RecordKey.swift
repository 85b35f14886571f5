import COpenSSL

/// The key of one direction: what it makes of records, and the count of them that is in each nonce (RFC 8446 §5.2 and
/// §5.3).
@safe
package struct RecordKey: ~Copyable {
    package enum Use: Int32, Sendable {
        case opening = 0
        case sealing = 1
    }

    private static let nonceLength = 12
    /// Where the parts of `secrets` begin: the traffic secret, the IV, and room for the nonce that is made of it.
    private static let ivOffset = 48
    private static let nonceOffset = Self.ivOffset + Self.nonceLength

    let suite: RecordSuite
    private let use: Use
    private let context: OpaquePointer
    private let secrets: SecretBytes
    /// Records that this key was used for.
    package private(set) var sequence: UInt64

    /// - Parameter sequence: records that were protected with this key elsewhere.
    /// - Returns: `nil` if the secret is not as long as the suite's hash, or memory lacks.
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

    /// Makes key and IV of the secret.
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

    /// Goes on to the next secret and the key that it gives (RFC 8446 §7.2).
    /// - Returns: whether it worked; if not, the key is of no use any more.
    package mutating func update() -> Bool {
        let start = unsafe self.secrets.start
        self.sequence = 0
        return unsafe KeySchedule.expand(
            start, self.suite, label: "traffic upd", into: start, count: self.suite.secretLength) && self.install()
    }

    /// Begins the next record: its nonce, and its header as what is authenticated beside the content.
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

    /// Writes one record of at most 2^14 + 238 bytes of content.
    /// - Parameter type: of the content; 0 makes the last zeros of the content padding, and what is before them the
    ///   type (RFC 8446 §5.4).
    /// - Returns: whether it worked; only memory may lack.
    package mutating func seal(_ type: UInt8, _ content: RawSpan, to output: CiphertextBuffer) -> Bool {
        let length = content.byteCount + 1 + RecordSize.tag
        guard length <= RecordSize.fragment else { return false }
        return unsafe output.extend(by: RecordSize.header + length) { target in
            unsafe content.withUnsafeBytes { unsafe self.seal(type, $0, into: target) }
        }
    }

    /// Writes one record. `target` has room for `content`, the header, the type and the tag.
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

    /// Decrypts one whole record into `target`, which has room for all but header and tag, and may hold anything
    /// afterwards if this throws.
    /// - Parameter record: header, at least a tag, at most 2^14 + 256 bytes.
    /// - Returns: how many bytes there are now, content, type and padding.
    mutating func open(
        _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer
    ) throws(RecordFault) -> Int {
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
