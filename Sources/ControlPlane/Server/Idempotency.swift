import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import Synchronization

/// Makes a POST with an Idempotency-Key happen once, however often it is sent.
struct Idempotency: Sendable {
    static let keyLimit = 255

    let responses = StoredResponses()

    /// Carries `call` out by `perform`, or gives the answer it had before.
    func once(
        _ call: ControlCall, _ perform: @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        guard call.operation.method == .post, let key = call.request.headers[.idempotencyKey] else {
            return try await perform(call)
        }
        guard (1...Self.keyLimit).contains(key.utf8.count) else {
            throw ControlProblem(400, "invalid-header", "Idempotency-Key must have 1 to \(Self.keyLimit) bytes.")
        }
        var call = call
        let body = try await call.body()
        call.request.body = RequestBody(buffer: body)
        let name = "\(call.caller.name) \(key)"
        let asked = Array("\(call.request.head.path ?? "")\n".utf8) + Array(body.readableBytesView)
        switch self.responses.begin(name, fingerprint: Fingerprint.of(asked)) {
        case .inProgress:
            throw ControlProblem(409, "under-way", "The request with this key is being carried out.").retryable(
                after: 1)
        case .keyReused:
            throw ControlProblem(422, "key-reused", "This Idempotency-Key came with another request before.")
        case .completed(let answer):
            return Response(
                status: answer.status, headers: answer.headers,
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
        case .new: return try await self.carryOut(call, name, perform)
        }
    }

    private func carryOut(
        _ call: ControlCall, _ name: String, _ perform: @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        do {
            let response = try await perform(call)
            return try await self.keep(response, name)
        } catch let problem as ControlProblem where problem.status < 500 && !problem.isRetryable {
            return try await self.keep(problem.response, name)
        } catch {
            self.responses.discard(name)
            throw error
        }
    }

    private func keep(_ response: Response, _ name: String) async throws -> Response {
        let collected = BodyCollector()
        try await response.body.write(collected)
        let answer = StoredResponses.ResponseCopy(
            status: response.status, headers: response.headers, body: collected.bytes)
        self.responses.finish(name, answer)
        return Response(
            status: answer.status, headers: answer.headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: collected.bytes)))
    }
}

/// Answers to requests that carried an Idempotency-Key, to be given again. Bounded in number and in bytes: the oldest
/// makes room.
final class StoredResponses: Sendable {
    static let limit = 1024
    static let byteLimit = 8 << 20

    struct ResponseCopy: Sendable {
        let status: HTTPResponse.Status
        let headers: HTTPFields
        let body: [UInt8]
    }

    enum LookupResult: Sendable {
        /// Nobody asked before; `finish` or `giveUp` must follow.
        case new
        case inProgress
        /// The key came with another request.
        case keyReused
        case completed(ResponseCopy)
    }

    private struct Entry {
        let key: String
        let fingerprint: [UInt8]
        var answer: ResponseCopy?
    }

    private let entries = Mutex<[Entry]>([])

    func begin(_ key: String, fingerprint: [UInt8]) -> LookupResult {
        self.entries.withLock { entries in
            guard let entry = entries.first(where: { $0.key == key }) else {
                Self.makeRoom(&entries)
                entries.append(Entry(key: key, fingerprint: fingerprint))
                return .new
            }
            guard entry.fingerprint == fingerprint else { return .keyReused }
            return entry.answer.map { .completed($0) } ?? .inProgress
        }
    }

    private static func makeRoom(_ entries: inout [Entry]) {
        func bytes() -> Int { entries.reduce(0) { $0 + $1.fingerprint.count + ($1.answer?.body.count ?? 0) } }
        while entries.count >= Self.limit || bytes() > Self.byteLimit {
            guard let oldest = entries.firstIndex(where: { $0.answer != nil }) else { return }
            entries.remove(at: oldest)
        }
    }

    func finish(_ key: String, _ answer: ResponseCopy) {
        self.entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.key == key }) else { return }
            entries[index].answer = answer
        }
    }

    /// The request may be tried again: it was answered with a fault of the moment.
    func discard(_ key: String) {
        self.entries.withLock { $0.removeAll { $0.key == key && $0.answer == nil } }
    }
}

/// Stands for a request's bytes: equal ones have equal prints, and others by no chance that matters here, as a caller
/// can only fool itself.
enum Fingerprint {
    /// 16 bytes by FNV-1a, in two lanes, and the length.
    static func of(_ bytes: [UInt8]) -> [UInt8] {
        var first: UInt64 = 0xCBF2_9CE4_8422_2325
        var second: UInt64 = 0x8422_2325_CBF2_9CE4
        for byte in bytes {
            first = (first ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
            second = (second ^ UInt64(byte &+ 0x55)) &* 0x0000_0100_0000_01B3
        }
        return [first, second, UInt64(bytes.count)].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(8 * $0)) }
        }
    }
}

/// Takes a response's body into memory.
final class BodyCollector: ResponseBodyWriter {
    private(set) var bytes: [UInt8] = []

    func write(_ buffer: ByteBuffer) async throws {
        self.bytes.append(contentsOf: buffer.readableBytesView)
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
