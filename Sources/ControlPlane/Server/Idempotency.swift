import HTTPTypes
import HummingbirdCore
import NIOCore
import Synchronization
import WireText

/// Performs a POST with an Idempotency-Key once, however often the client sends it.
struct Idempotency: Sendable {
    private static let keyLimit = 255

    private let responses = StoredResponses()

    /// Performs `call`, or returns the stored response of its first execution.
    func once(
        _ call: ControlCall, _ perform: @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        guard call.operation.method == .post, let key = call.request.headers[.idempotencyKey] else {
            return try await perform(call)
        }
        guard call.request.headers[values: .idempotencyKey].count == 1 else {
            throw ControlProblem(400, "invalid-header", "Send one Idempotency-Key field.")
        }
        guard (1...Self.keyLimit).contains(key.utf8.count) else {
            throw ControlProblem(400, "invalid-header", "Idempotency-Key must have 1 to \(Self.keyLimit) bytes.")
        }
        var call = call
        let body = try await call.body()
        call.request.body = RequestBody(buffer: body)
        let name = "\(call.caller.name) \(key)"
        let request = Array("\(call.request.head.path ?? "")\n".utf8) + Array(body.readableBytesView)
        switch self.responses.begin(name, fingerprint: MessageDigest.of(request, by: .sha256)) {
        case .inProgress:
            throw ControlProblem(409, "under-way", "A request with this Idempotency-Key is still running.")
                .retryable(after: 1)
        case .keyReused:
            throw ControlProblem(422, "key-reused", "This Idempotency-Key was used for another request.")
        case .completed(let buffered): return buffered.response
        case .new: return try await self.run(call, name, perform)
        }
    }

    private func run(
        _ call: ControlCall, _ name: String, _ perform: @Sendable (ControlCall) async throws -> Response
    ) async throws -> Response {
        do {
            return try await self.store(try await perform(call), name)
        } catch let problem as ControlProblem where problem.status < 500 && !problem.isRetryable {
            return try await self.store(problem.response, name)
        } catch {
            self.responses.discard(name)
            throw error
        }
    }

    private func store(_ response: Response, _ name: String) async throws -> Response {
        let buffered = try await BufferedResponse(response)
        self.responses.finish(name, buffered)
        return buffered.response
    }
}

/// Responses to requests with an Idempotency-Key. Bounded in number and in bytes: the oldest one is dropped first.
private final class StoredResponses: Sendable {
    private static let limit = 1024
    private static let byteLimit = 8 << 20

    enum LookupResult: Sendable {
        /// The first request with this key; `finish` or `discard` must follow.
        case new
        case inProgress
        /// The key belongs to another request.
        case keyReused
        case completed(BufferedResponse)
    }

    private struct Entry {
        let key: String
        /// SHA-256 of the request.
        let fingerprint: [UInt8]
        var response: BufferedResponse?
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
            return entry.response.map { .completed($0) } ?? .inProgress
        }
    }

    private static func makeRoom(_ entries: inout [Entry]) {
        func bytes() -> Int { entries.reduce(0) { $0 + $1.fingerprint.count + ($1.response?.body.count ?? 0) } }
        while entries.count >= Self.limit || bytes() > Self.byteLimit {
            guard let oldest = entries.firstIndex(where: { $0.response != nil }) else { return }
            entries.remove(at: oldest)
        }
    }

    func finish(_ key: String, _ response: BufferedResponse) {
        self.entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.key == key }) else { return }
            entries[index].response = response
        }
    }

    /// Forgets a request that failed temporarily, so that it can be repeated.
    func discard(_ key: String) {
        self.entries.withLock { $0.removeAll { $0.key == key && $0.response == nil } }
    }
}
