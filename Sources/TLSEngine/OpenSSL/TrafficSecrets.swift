import COpenSSL

/// What is noted of a server's handshake so that its records can be protected without OpenSSL afterwards. Gone, wiped,
/// with the handshake.
struct TrafficSecrets: ~Copyable {
    private static let fromClient: StaticString = "CLIENT_TRAFFIC_SECRET_0 "
    private static let fromServer: StaticString = "SERVER_TRAFFIC_SECRET_0 "

    private var client = SecretBytes?.none
    private var server = SecretBytes?.none
    /// Records that OpenSSL wrote under the application key, which are tickets; `nil` until our Finished was written.
    private var written: UInt64?

    /// Takes a line of the key log, if it holds one of the two secrets.
    mutating func noteKey(_ line: UnsafePointer<CChar>) {
        if let secret = unsafe Self.secret(in: line, behind: Self.fromClient) {
            self.client = consume secret
        } else if let secret = unsafe Self.secret(in: line, behind: Self.fromServer) {
            self.server = consume secret
        }
    }

    /// Counts a record whose header was written.
    mutating func noteRecord() {
        self.written? += 1
    }

    /// From here on records are under the application key (RFC 8446 §4.4.4).
    mutating func noteFinished() {
        self.written = 0
    }

    /// - Returns: `nil` if something of it is not known, or memory lacks.
    mutating func makeRecords(_ suite: RecordSuite) -> EstablishedRecords? {
        let client = self.client.take()
        let server = self.server.take()
        guard let client, let server, let written = self.written,
            let reading = RecordKey.make(suite, secret: client, use: .opening),
            let writing = RecordKey.make(suite, secret: server, use: .sealing, sequence: written)
        else { return nil }
        return EstablishedRecords(reading: reading, writing: writing)
    }

    /// The secret in a line "LABEL random secret", both in hexadecimal; `nil` if the label is another.
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
