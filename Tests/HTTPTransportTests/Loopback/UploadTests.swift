import ByteKernels
import HTTPTransport
import Synchronization
import Testing
import WireText

@Suite("Request bodies, RFC 9112 §7.1, RFC 9110 §10.1.1", .timeLimit(.minutes(20)))
struct UploadTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    private let pool = ConnectionPool()

    /// Provides pieces after they have been announced.
    private final class Stream: BodySource {
        private let pieces: Mutex<[BodyPiece]>
        private let availabilityHandler = Mutex<(@Sendable () -> Void)?>(nil)
        let asked = Gate()

        enum BodyPiece: Sendable {
            case bytes([UInt8])
            case later
            case failed
        }

        init(_ pieces: [BodyPiece]) { self.pieces = Mutex(pieces) }

        func add(_ piece: BodyPiece) {
            self.pieces.withLock { $0.append(piece) }
            self.availabilityHandler.withLock { $0 }?()
        }

        func whenAvailable(_ work: @escaping @Sendable () -> Void) {
            self.availabilityHandler.withLock { $0 = work }
        }

        func read(into room: inout MutableRawSpan) -> BodyRead {
            let next = self.pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            switch next {
            case .bytes(let bytes)?:
                bytes.withRawSpan { room.copy($0, at: 0) }
                return .bytes(bytes.count)
            case .later?:
                self.asked.open()
                return .later
            case .failed?: return .failed
            case nil: return .end
            }
        }

        func rewind() -> Bool { false }
    }

    @Test func bytesAreSentWithTheirLength() async throws {
        let server = try await RawServer([[.receive("\r\n\r\nhello"), .send(Self.ok)]])
        var request = server.request("POST")
        request.body = .bytes(Array("hello".utf8))
        let recorder = await self.pool.perform(request)
        #expect(recorder.trailers == [])
        #expect(recorder.sent == 5)
        #expect(server.received[0].contains("Content-Length: 5\r\n"))
        #expect(recorder.metrics?.requestBodyBytes == 5)
        #expect(recorder.metrics?.requestEnd != nil)
    }

    @Test func streamIsSentInChunks() async throws {
        let server = try await RawServer([[.receive("\r\n0\r\n\r\n"), .send(Self.ok), .request, .send(Self.ok)]])
        let stream = Stream([.bytes(Array("hel".utf8)), .later])
        var request = server.request("POST")
        request.body = .source(stream, length: nil)
        let recorder = ExchangeRecorder()
        let exchange = self.pool.exchange(request, consumer: recorder)
        exchange.start()
        await stream.asked.pass()
        stream.add(.bytes(Array("lo".utf8)))
        let entry = await recorder.whole()
        #expect(entry.trailers == [])
        #expect(server.received[0].hasSuffix("\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"))
        #expect(entry.metrics?.requestBodyBytes == Int64(8 + 7 + 5))
        #expect(entry.metrics?.requestContentBytes == 5)
        #expect(await self.pool.perform(server.request()).connections.map(\.isReused) == [true])
    }

    @Test func largeBodyIsSentWhole() async throws {
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
        let server = try await RawServer([[.request, .receiveBytes(body.count), .send(Self.ok)]])
        var request = server.request("PUT")
        request.body = .bytes(body)
        let recorder = await self.pool.perform(request)
        #expect(recorder.sent == body.count)
        #expect(server.bytes(0).suffix(body.count).elementsEqual(body))
    }

    @Test func failingSourceFailsTheExchange() async throws {
        for (pieces, length, failure) in [
            ([.failed], nil, .sourceFailed), ([.bytes([1])], 2, .tooShort(missing: 1)),
            ([.bytes([1, 2])], 1, .tooLong),
        ] as [([Stream.BodyPiece], Int64?, BodyFailure)] {
            let server = try await RawServer([[.request]])
            var request = server.request("POST")
            request.body = .source(Stream(pieces), length: length)
            #expect(await self.pool.perform(request).failure == .body(failure))
        }
    }

    @Test func bodyWaitsForTheServersContinue() async throws {
        let server = try await RawServer([
            [.request, .send("HTTP/1.1 100 Continue\r\n\r\n"), .receive("hello"), .send(Self.ok)]
        ])
        var request = server.request("POST")
        request.body = .bytes(Array("hello".utf8))
        request.continueTimeout = .seconds(60)
        let recorder = await self.pool.perform(request)
        #expect(recorder.informational == [100])
        #expect(recorder.sent == 5)
    }

    @Test func bodyIsSentUnaskedAfterTheContinueTimeout() async throws {
        let server = try await RawServer([[.request, .receive("hello"), .send(Self.ok)]])
        var request = server.request("POST")
        request.body = .bytes(Array("hello".utf8))
        request.continueTimeout = .milliseconds(1)
        #expect(await self.pool.perform(request).sent == 5)
    }

    @Test func bodyIsNotSentToAServerThatRefuses() async throws {
        let server = try await RawServer([
            [.request, .send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"), .request], [.request, .send(Self.ok)],
        ])
        var request = server.request("POST")
        request.body = .bytes(Array("hello".utf8))
        request.continueTimeout = .seconds(60)
        let recorder = await self.pool.perform(request)
        #expect(recorder.head?.status == 417)
        #expect(recorder.sent == 0)
        #expect(await self.pool.perform(server.request()).connections.map(\.isReused) == [false])
    }

    @Test func responseBeforeTheEndOfTheBodyIsTaken() async throws {
        let server = try await RawServer([[.request, .send("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno")]])
        var request = server.request("POST")
        request.body = .source(Stream([.bytes([1]), .later]), length: nil)
        let recorder = await self.pool.perform(request)
        #expect(recorder.head?.status == 413)
        #expect(recorder.text == "no")
        #expect(recorder.trailers == [])
    }
}
