import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOPosix
import Synchronization

/// `/v1/transfers`: HTTP data, upload and download tasks.
struct TransfersResource: Sendable {
    /// Bytes of a request with a body in it; longer ones come from a file or as a stream.
    static let requestLimit = 32 << 20
    static let defaultLimit = 100
    static let maximumLimit = 1000

    let context: ControlContext

    var registry: TransferRegistry { self.context.transfers }

    var operations: [Operation] {
        let list = "/v1/transfers"
        let one = list + "/{id}"
        return [
            Operation("listTransfers", .get, list, .read, parameters: ["state", "kind", "label", "limit", "cursor"]) {
                try self.list($0)
            },
            Operation("createTransfer", .post, list, .operate, bodyLimit: Self.requestLimit) {
                try await self.create($0)
            },
            Operation("getTransfer", .get, one, .read) { self.transferResponse(try self.find($0)) },
            Operation("changeTransfer", .patch, one, .operate) { try await self.change($0) },
            Operation("forgetTransfer", .delete, one, .operate) { try self.forget($0) },
            Operation("suspendTransfer", .post, one + ":suspend", .operate) { try self.suspend($0) },
            Operation("resumeTransfer", .post, one + ":resume", .operate) { try self.resume($0) },
            Operation("cancelTransfer", .post, one + ":cancel", .operate) { try await self.cancel($0) },
            Operation("restartTransfer", .post, one + ":restart", .operate) { try await self.restart($0) },
            // It goes through, and is never held whole.
            Operation("sendTransferBody", .put, one + "/body", .operate, bodyLimit: .max) {
                try await self.sendBody($0)
            },
            Operation("getTransferContent", .get, one + "/content", .operate) { try await self.content($0) },
        ]
    }

    // MARK: Finding and showing

    func find(_ call: ControlCall) throws(ControlProblem) -> RunningTransfer {
        let name = call.parameters["id"] ?? ""
        guard let transfer = self.registry.find(name) else {
            throw ControlProblem(
                404, "unknown-transfer", "There is no transfer \(name.prefix(64)), or it made room for others.")
        }
        return transfer
    }

    func transferResponse(
        _ transfer: RunningTransfer, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) -> Response {
        .json(JSONBody.encode(transfer.snapshot(self.context.anchor)), status: status, headers: headers)
    }

    func list(_ call: ControlCall) throws(ControlProblem) -> Response {
        let limit = try call.query.integer("limit", in: 1...Self.maximumLimit) ?? Self.defaultLimit
        let start = try call.query.integer("cursor", in: 0...Int.max) ?? 0
        let states = try Self.words(call.query, "state", of: TransferStage.self)
        let kinds = try Self.words(call.query, "kind", of: TransferPlan.Kind.self)
        let labels = call.query.values("label").map { ConnectionFilter.Label($0) }
        let found = self.registry.all.filter { $0.number > UInt64(start) }.map { $0.snapshot(self.context.anchor) }
            .filter {
                one in
                (states.isEmpty || states.contains(one.state)) && (kinds.isEmpty || kinds.contains(one.kind))
                    && labels.allSatisfy { $0.matches(one.labels ?? [:]) }
            }
        let items = Array(found.prefix(limit))
        let next = found.count > limit ? items.last.map { Self.path(call.query, cursor: $0.id) } : nil
        return .json(
            JSONBody.encode(TransferPage(items: items, next: next)),
            headers: next.map { [.link: "<\($0)>; rel=\"next\""] } ?? [:])
    }

    /// - Throws: `ControlProblem` 400 for a value that is none of the choices.
    private static func words<Choice: CaseIterable & RawRepresentable<String>>(
        _ query: Query, _ name: String, of type: Choice.Type
    ) throws(ControlProblem) -> Set<String> {
        let given = Set(query.list(name))
        guard let unknown = given.first(where: { Choice(rawValue: $0) == nil }) else { return given }
        let known = type.allCases.map(\.rawValue).joined(separator: ", ")
        throw ControlProblem(400, "invalid-parameter", "\(name) has \(unknown.prefix(64)); it may be \(known).")
            .at(parameter: name)
    }

    private static func path(_ query: Query, cursor: String) -> String {
        let kept = query.pairs.filter { $0.name != "cursor" }.map { pair in
            "\(PercentText.encoded(pair.name))=\(PercentText.encoded(pair.value))&"
        }
        return "/v1/transfers?\(kept.joined())cursor=\(cursor)"
    }

    // MARK: Making and forgetting

    func create(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let settings = await self.context.configuration.snapshot.configuration.control.transfers
        let wanted = try await call.decode(TransferRequest.self)
        let order = try TransferRequestParser(wanted: wanted, settings: settings, targets: self.registry.targets)
            .parse()
        let transfer = try self.registry.add(order, settings: settings)
        if order.startsImmediately, !order.isStreamed {
            do throws(ControlProblem) {
                try transfer.begin()
            } catch {
                self.registry.remove(transfer)
                throw error
            }
        }
        if let seconds = call.waitPreference() { await Self.waitForEnd(of: transfer, within: .seconds(seconds)) }
        return self.transferResponse(
            transfer, status: .created, headers: [.location: "/v1/transfers/\(transfer.number)"])
    }

    func change(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        let patch = try await call.decode(ConnectionPatch.self)
        transfer.change(
            description: try OpenRequestParser.description(patch.description),
            priority: try OpenRequestParser.priority(patch.priority),
            labels: try patch.labels.map { (labels) throws(ControlProblem) in try OpenRequestParser.labels(labels) })
        return self.transferResponse(transfer)
    }

    func forget(_ call: ControlCall) throws(ControlProblem) -> Response {
        self.registry.remove(try self.find(call))
        return .noContent
    }

    // MARK: Verbs

    private func conflict(_ transfer: RunningTransfer, _ wanted: String) -> ControlProblem {
        ControlProblem(
            409, "state-conflict", "The transfer is \(transfer.stage.rawValue); only \(wanted).")
    }

    func suspend(_ call: ControlCall) throws(ControlProblem) -> Response {
        let transfer = try self.find(call)
        guard transfer.suspend() || transfer.stage == .suspended else {
            throw self.conflict(transfer, "one that runs can be suspended")
        }
        return self.transferResponse(transfer)
    }

    func resume(_ call: ControlCall) throws(ControlProblem) -> Response {
        let transfer = try self.find(call)
        guard [.suspended, .running].contains(transfer.stage) else {
            throw self.conflict(transfer, "one that is suspended can be resumed; what is over is restarted")
        }
        try transfer.resume()
        return self.transferResponse(transfer)
    }

    /// Answers when it is over, or with 202 where that takes longer than the client waits.
    func cancel(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        let wanted = try await call.decode(TransferCancel.self)
        guard !transfer.stage.isOver, transfer.stage != .saving else {
            throw self.conflict(transfer, "one that is not over can be cancelled")
        }
        transfer.cancel(keepsResumeData: wanted.keepResumeData ?? true)
        let isOver = await Self.waitForEnd(of: transfer, within: .seconds(call.waitPreference() ?? 5))
        return self.transferResponse(transfer, status: isOver ? .ok : .accepted)
    }

    func restart(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let transfer = try self.find(call)
        let wanted = try await call.decode(TransferRestart.self)
        guard transfer.stage.isOver else { throw self.conflict(transfer, "one that is over can be restarted") }
        guard !transfer.plan.isStreamed else {
            throw ControlProblem(409, "body-gone", "Its body came by a stream and is gone; make another transfer.")
        }
        let data = wanted.fromBeginning == true ? nil : transfer.state.withLock { $0.resumeData }
        guard data != nil || wanted.fromBeginning == true else {
            throw ControlProblem(
                409, "no-resume-data", "There is nothing to go on from; {\"fromBeginning\": true} begins anew.")
        }
        try self.registry.checkCapacity(await self.context.configuration.snapshot.configuration.control.transfers)
        try transfer.begin(resuming: data)
        return self.transferResponse(transfer)
    }

    @discardableResult
    static func waitForEnd(of transfer: RunningTransfer, within limit: Duration) async -> Bool {
        let clock = ContinuousClock()
        let deadline = clock.now.advanced(by: limit)
        var pause = Duration.milliseconds(1)
        while !transfer.stage.isOver {
            guard clock.now < deadline, (try? await Task.sleep(for: pause)) != nil else { return false }
            pause = min(pause * 2, .milliseconds(50))
        }
        return true
    }
}

extension TransfersResource {
    static let pieceSize = 256 << 10

    /// Brings the body of a streamed transfer, as fast as the server takes it; answers when everything is on its way.
    func sendBody(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let transfer = try self.find(call)
        guard transfer.plan.isStreamed else {
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
        await Self.waitForEnd(of: transfer, within: .seconds(call.waitPreference() ?? 5))
        return self.transferResponse(transfer, status: transfer.stage.isOver ? .ok : .accepted)
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
        guard let place = transfer.plan.destination else {
            let range = try ContentRange(call.request.headers[.range], length: Int64(content.count))
            let bytes = content[Int(range.start)..<Int(range.end)]
            return Response(
                status: range.status, headers: range.headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
        do {
            let file = try place.openForReading()
            let range = try ContentRange(call.request.headers[.range], length: try file.length())
            return Response(status: range.status, headers: range.headers, body: Self.body(file, range))
        } catch let refusal as FileError {
            throw ControlProblem(410, "file-gone", "\(place.path): \(refusal.description).")
        }
    }

    private static func body(_ file: OpenFile, _ range: ContentRange) -> ResponseBody {
        ResponseBody(contentLength: Int(range.end - range.start)) { writer in
            var offset = range.start
            while offset < range.end {
                let (start, count) = (offset, Int(min(Int64(Self.pieceSize), range.end - offset)))
                let bytes = try await NIOThreadPool.singleton.runIfActive { try file.read(count, at: start) }
                guard !bytes.isEmpty else { throw FileError(EIO) }
                try await writer.write(ByteBuffer(bytes: bytes))
                offset += Int64(bytes.count)
            }
            try await writer.finish(nil)
        }
    }
}
