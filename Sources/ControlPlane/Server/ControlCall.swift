import ControlAPI
import FoundationEssentials
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// One request on its way through an operation.
struct ControlCall: Sendable {
    /// Bytes of body that are read unless the operation says otherwise.
    static let bodyLimit = 1 << 20

    var request: Request
    let context: ControlRequestContext
    let operation: Operation
    let parameters: [String: String]
    let query: Query
    let caller: Caller
    /// Of a request that goes on by itself.
    var progress: RunningOperation?

    // MARK: The body

    /// How long a body may take.
    static let bodyTimeout = Duration.seconds(30)

    /// The whole body.
    /// - Throws: `ControlProblem` 413 above the operation's limit, 408 when it does not come within 30 seconds.
    func body() async throws -> ByteBuffer {
        let request = self.request
        let limit = self.operation.bodyLimit
        let body: ByteBuffer?
        do {
            body = try await Waiting.atMost(Self.bodyTimeout) { try await request.body.collect(upTo: limit) }
        } catch is NIOTooManyBytesError {
            throw ControlProblem.bodyTooLarge(limit)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            var problem = ControlProblem(
                400, "malformed-body", "The body is not framed as RFC 9112 §6 has it, or ended too early.")
            problem.endsConnection = true
            throw problem
        }
        guard let body else {
            var problem = ControlProblem(408, "body-too-slow", "The body was not there within 30 s.").retryable()
            problem.endsConnection = true
            throw problem
        }
        return body
    }

    /// The media type without its parameters, in lower case; `nil` where none is given.
    var mediaType: String? {
        self.request.headers[.contentType].map { value in
            value.prefix { $0 != ";" }.trimmingSpaces.lowercased()
        }
    }

    /// Bodies are taken as they are.
    /// - Throws: `ControlProblem` 415 for one that is compressed (RFC 9110 §8.4).
    func refuseCompressed() throws(ControlProblem) {
        let codings = self.request.headers[values: .contentEncoding].flatMap { $0.split(separator: ",") }
        guard codings.allSatisfy({ $0.trimmingSpaces.lowercased() == "identity" }) else {
            throw ControlProblem(415, "unsupported-coding", "The body is compressed; send it as it is.")
        }
    }

    /// The body as JSON; an empty one counts as an object without members.
    /// - Throws: `ControlProblem` with the places of what is wrong.
    func decode<Model: StrictlyRead>(_ type: Model.Type) async throws -> Model {
        try JSONBody.decode(type, from: try await self.jsonBytes())
    }

    /// The body, which is to be JSON.
    func jsonBytes() async throws -> [UInt8] {
        guard self.mediaType == nil || self.mediaType == "application/json" else {
            throw ControlProblem(415, "unsupported-media-type", "Send application/json.")
        }
        try self.refuseCompressed()
        var buffer = try await self.body()
        return buffer.readBytes(length: buffer.readableBytes) ?? []
    }

    // MARK: Answers

    /// Seconds that the client is willing to wait (RFC 7240 §4.3), at most `limit`; `nil` if it does not say.
    func waitPreference(limit: Int = 60) -> Int? {
        for value in self.request.headers[values: .prefer] {
            for piece in value.split(separator: ",") {
                let pair = piece.split(separator: "=").map(\.trimmingSpaces)
                if pair.count == 2, pair[0].lowercased() == "wait", let seconds = Int(pair[1]), seconds >= 0 {
                    return min(seconds, limit)
                }
            }
        }
        return nil
    }

    /// Whether the client wants no waiting at all (RFC 7240 §4.1).
    var prefersAsynchronous: Bool {
        self.request.headers[values: .prefer].contains { value in
            value.split(separator: ",").contains { $0.trimmingSpaces.lowercased() == "respond-async" }
        }
    }
}

extension StringProtocol {
    /// Without spaces and tabs at its ends.
    var trimmingSpaces: String {
        let start = self.drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
