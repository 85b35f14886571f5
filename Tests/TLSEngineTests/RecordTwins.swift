import Synchronization
import TLSEngine
import TestSupport
import Testing

/// One established server connection twice under the same secrets: in OpenSSL and in the compact record layer.
final class RecordTwins {
    /// The output of one of the twins for its input.
    struct Outcome: Equatable {
        enum End: Equatable {
            case closed
            case alert(UInt8)
            /// With the alert that was sent.
            case failed(UInt8?)
        }

        var received: [UInt8] = []
        var end: End?
    }

    /// OpenSSL's client, whose records `fromClient` also makes.
    let client: SecurePair.Side
    let library: SecurePair.Side
    let compact: RecordEnd
    private let suite: RecordSuite
    private let secrets = SecretLines()
    private var compactOutcome = Outcome()
    private let compactOutput = CiphertextBuffer()

    init(_ suite: RecordSuite) throws {
        var configuration = try Fixture.server()
        // A ticket would take a number of the server's first key.
        configuration.resumption = .off
        configuration.recordLayer = .openSSL
        let secrets = self.secrets
        configuration.keyLog = .lines { secrets.note($0) }
        var client = try Fixture.client()
        client.cipherSuites = Self.names[suite] ?? ""
        let pair = try SecurePair(client, configuration)
        pair.run()
        try #require(pair.server.metadata?.cipherName == client.cipherSuites)
        try #require(pair.server.connection.holdsOpenSSLConnection)
        let reading = RecordKey.make(suite, secret: try secrets.secret(Self.clientLabel), use: .opening)
        let writing = RecordKey.make(suite, secret: try secrets.secret(Self.serverLabel), use: .sealing)
        guard let reading, let writing else { throw RecordEnd.CreationFailure() }
        self.suite = suite
        self.client = pair.client
        self.library = pair.server
        self.compact = RecordEnd(CompactRecordLayer(reading: reading, writing: writing))
    }

    private static let clientLabel = "CLIENT_TRAFFIC_SECRET_0"
    private static let serverLabel = "SERVER_TRAFFIC_SECRET_0"
    private static let names: [RecordSuite: String] = [
        .aes128GCM: "TLS_AES_128_GCM_SHA256", .aes256GCM: "TLS_AES_256_GCM_SHA384",
        .chaCha20Poly1305: "TLS_CHACHA20_POLY1305_SHA256",
    ]

    /// The records of a client that runs the script.
    func wire(_ script: RecordScript) throws -> [UInt8] {
        let secret = try self.secrets.secret(Self.clientLabel)
        guard let key = RecordKey.make(self.suite, secret: secret, use: .sealing) else {
            throw RecordEnd.CreationFailure()
        }
        return script.wire(under: key)
    }

    /// Feeds both the same bytes.
    func feed(_ bytes: [UInt8]) {
        _ = self.library.deliver(bytes)
        for seen in self.compact.feed(bytes) {
            switch seen {
            case .bytes(let bytes): self.compactOutcome.received += bytes
            case .closed: self.compactOutcome.end = .closed
            case .alert(let code): self.compactOutcome.end = .alert(code)
            case .failed(.engine): self.compactOutcome.end = .failed(nil)
            case .failed(.peer(let violation)):
                let isWritten = self.compact.records.writeAlert(violation.alert, to: self.compactOutput)
                self.compactOutcome.end = .failed(isWritten ? violation.alert : nil)
            }
        }
    }

    func outcomes() -> (library: Outcome, compact: Outcome) {
        var library = Outcome(received: self.library.received)
        if let failure = self.library.failure {
            let code = failure.alert?.code
            library.end = failure.kind == .peerAlert ? code.map { .alert($0) } : .failed(code)
        } else if self.library.inputClosed {
            library.end = .closed
        }
        return (library, self.compactOutcome)
    }

    /// Makes both send the same bytes.
    func write(_ bytes: [UInt8]) throws {
        try self.library.write(bytes)
        let isWritten = self.compact.records.write(bytes.span.bytes, to: self.compactOutput)
        #expect(isWritten)
    }

    func closeOutput() {
        self.library.connection.closeOutput()
        let isWritten = self.compact.records.writeCloseNotify(to: self.compactOutput)
        #expect(isWritten)
    }

    /// Both have sent the same: the same bytes unless the script asks for new keys. OpenSSL answers each such request at
    /// once, we answer all of them before the next data (RFC 8446 §4.6.3 permits both); then what a client reads is the
    /// same.
    /// - Returns: the output of the compact records.
    @discardableResult
    func expectSameOutput(_ script: RecordScript) throws -> [UInt8] {
        let library = self.library.takeOutput()
        let compact = self.compactOutput.take { bytes in bytes.withUnsafeBytes { Array($0) } }
        // Compared outside of `#expect`: formatting the difference of so many bytes takes too long.
        let isSame = script.asksForKeys ? try self.read(library) == self.read(compact) : library == compact
        #expect(isSame, "\(library.count) bytes, \(compact.count) bytes")
        return compact
    }

    /// A client's events for the server's output.
    private func read(_ output: [UInt8]) throws -> [RecordEnd.Seen] {
        let secret = try self.secrets.secret(Self.serverLabel)
        guard let reading = RecordKey.make(self.suite, secret: secret, use: .opening),
            let writing = RecordEnd.key(self.suite, RecordEnd.mine, .sealing)
        else { throw RecordEnd.CreationFailure() }
        return RecordEnd(CompactRecordLayer(reading: reading, writing: writing)).feed(output)
    }
}

/// The secrets of a key log.
final class SecretLines: Sendable {
    private let lines = Mutex<[String]>([])

    func note(_ line: String) { self.lines.withLock { $0.append(line) } }

    func secret(_ label: String) throws -> SecretBytes {
        let line = self.lines.withLock { lines in lines.first { $0.hasPrefix(label + " ") } }
        return SecretBytes(RecordVector.bytes(try #require(line?.split(separator: " ").last.map(String.init))))
    }
}
