import ByteKernels
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import TestSupport
import Testing

/// OpenSSL encrypts nothing while a message that the peer has begun after the handshake is incomplete.
@Suite("Plaintext that TLS keeps before it encrypts it")
struct KeptPlaintextTests {
    private final class Secrets: Sendable {
        private let lines = Mutex<[String]>([])

        func note(_ line: String) {
            self.lines.withLock { $0.append(line) }
        }

        /// The key of the client's first records after the handshake.
        func clientKey(_ suite: RecordSuite) throws -> RecordKey? {
            let lines = self.lines.withLock { $0 }
            let line = try #require(lines.first { $0.hasPrefix("CLIENT_TRAFFIC_SECRET_0 ") })
            let digits = (line.split(separator: " ").last ?? "").compactMap(\.hexDigitValue)
            let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
            return RecordKey.make(suite, secret: SecretBytes(bytes), use: .sealing)
        }
    }

    /// The two records of one KeyUpdate, which asks for none in return (RFC 8446 §4.6.3).
    private func keyUpdate(_ secrets: Secrets, _ suite: RecordSuite) throws -> [[UInt8]] {
        guard var key = try secrets.clientKey(suite) else { throw TaskFailure.ended }
        let output = CiphertextBuffer()
        var records: [[UInt8]] = []
        for content: [UInt8] in [[24, 0, 0, 1], [0]] {
            let isSealed = key.seal(22, content.span.bytes, to: output)
            #expect(isSealed)
            records.append(output.take { bytes in bytes.withUnsafeBytes { Array($0) } })
        }
        return records
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func keptWriteIsDoneWhenItsRecordHasLeft(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let pair = try harness.transportPair()
        let (client, secrets, recorder) = (RecordingConsumer(), Secrets(), TaskRecorder())
        let clientSettings = try SecureFixture.client()
        let serverSettings = try SecureFixture.server {
            $0.minimumVersion = .tls13
            $0.keyLog = .lines { secrets.note($0) }
        }
        var made: StreamTask?
        harness.perform {
            let task = StreamTask(adopting: pair.accepted)
            made = task
            recorder.secure(task, "secure", serverSettings)
            recorder.read(task, "r", 1, 9)
            SecureTransport.upgrade(pair.opened, settings: clientSettings, received: []) { result in
                guard let end = try? result.get() else { return }
                end.consumer = client
                end.resumeReading()
            }
        }
        #expect(harness.run { recorder.lines == ["secure"] })
        let task = try #require(made)
        let suite = try #require(task.record.read { $0.tls }.flatMap { RecordSuite(rawValue: $0.cipherIdentifier) })
        let update = try self.keyUpdate(secrets, suite)
        harness.perform { update[0].withRawSpan { _ = pair.opened.write($0) } }
        harness.settle()
        harness.perform {
            recorder.write(task, "answer")
            recorder.write(task, "more")
        }
        harness.settle()
        #expect(recorder.lines == ["secure"] && client.received.isEmpty)
        #expect(task.queuedBytes == 6 && task.sentBytes + 6 == task.writtenBytes)
        harness.perform { update[1].withRawSpan { _ = pair.opened.write($0) } }
        #expect(harness.run { recorder.lines == ["secure", "answer", "more"] && client.text == "answermore" })
        #expect(task.queuedBytes == 0 && task.sentBytes == task.writtenBytes)
        harness.perform {
            task.cancelOnLoop()
            pair.opened.reset()
        }
        harness.finish()
    }

    @Test func plaintextIsSentUpToTheLastWholePiece() {
        var progress = PlaintextProgress()
        progress.accepted(30)
        progress.encrypted(10, below: 100)
        progress.encrypted(5, below: nil)
        progress.encrypted(15, below: nil)
        #expect(progress.keptBytes == 20)
        #expect([99, 100, .max].map { progress.sent(below: $0) } == [0, 10, 10])
        progress.keptEncrypted(below: 200)
        #expect(progress.keptBytes == 0)
        progress.encrypted(1, below: 210)
        #expect([199, 200, 210].map { progress.sent(below: $0) } == [10, 30, 31])
        #expect(progress.acceptedBytes == 30)
    }
}
