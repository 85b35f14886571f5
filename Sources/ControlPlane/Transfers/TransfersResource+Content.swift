import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOPosix
import Synchronization

extension TransfersResource {
    static let pieceSize = 256 << 10

    /// Brings the body of a streamed transfer, as fast as the server takes it; answers when everything is on its way.
    func sendBody(_ call: ControlCall) async throws -> Response {
        try self.context.refuseWhileDraining()
        let transfer = try self.find(call)
        guard transfer.order.isStreamed else {
            throw ControlProblem(409, "state-conflict", "The transfer was made with its body, or has none.")
        }
        let pipe = BodyPipe()
        let length = call.request.headers[.contentLength].flatMap { Int64($0) }
        let isFirst = transfer.state.withLock { state in
            guard state.stage == .waiting else { return false }
            state.stage = .running
            return true
        }
        guard isFirst else { throw ControlProblem(409, "state-conflict", "The body was brought already.") }
        do throws(ControlProblem) {
            try transfer.begin(pipe: pipe, bodyLength: length)
        } catch {
            transfer.state.withLock { $0.stage = .waiting }
            throw error
        }
        do {
            for try await buffer in call.request.body {
                guard await pipe.write(buffer) else { break }
            }
            pipe.finish()
        } catch {
            // Whoever brought it went away: what is there is not the whole.
            pipe.fail()
            throw error
        }
        await Self.ended(transfer, within: .seconds(call.waitPreference() ?? 5))
        return self.shown(transfer, status: transfer.stage.isOver ? .ok : .accepted)
    }

    /// What was received: out of memory, or out of the destination. Never as what it says it is: nobody's browser is to
    /// carry it out.
    func content(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        let (stage, content) = transfer.state.withLock { ($0.stage, $0.content) }
        guard stage == .finished else {
            let problem = ControlProblem(
                409, "state-conflict",
                "The transfer is \(stage.rawValue); what it received is given once it is finished.")
            throw stage.isOver ? problem : problem.retryable(after: 1)
        }
        guard let place = transfer.order.destination else {
            let range = try ContentRange(call.request.headers[.range], length: Int64(content.count))
            let bytes = content[Int(range.start)..<Int(range.end)]
            return Response(
                status: range.status, headers: range.headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
        do {
            let file = try place.opened()
            let range = try ContentRange(call.request.headers[.range], length: try file.length())
            return Response(status: range.status, headers: range.headers, body: Self.body(file, range))
        } catch let refusal as FileRefusal {
            throw ControlProblem(410, "file-gone", "\(place.path): \(refusal.description).")
        }
    }

    private static func body(_ file: OpenFile, _ range: ContentRange) -> ResponseBody {
        ResponseBody(contentLength: Int(range.end - range.start)) { writer in
            var offset = range.start
            while offset < range.end {
                let (start, count) = (offset, Int(min(Int64(Self.pieceSize), range.end - offset)))
                let bytes = try await NIOThreadPool.singleton.runIfActive { try file.read(count, at: start) }
                guard !bytes.isEmpty else { throw FileRefusal(EIO) }
                try await writer.write(ByteBuffer(bytes: bytes))
                offset += Int64(bytes.count)
            }
            try await writer.finish(nil)
        }
    }
}
