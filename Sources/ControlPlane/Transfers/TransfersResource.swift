import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOPosix

/// `/v1/transfers`: HTTP data, upload and download tasks.
struct TransfersResource: Sendable {
    /// Longest `createTransfer` request in bytes; longer bodies are sent from a file or as a stream.
    private static let requestLimit = 32 << 20
    private static let defaultLimit = 100
    private static let maximumLimit = 1000
    private static let chunkSize = 256 << 10

    let context: ControlContext

    private var registry: TransferRegistry { self.context.transfers }

    var operations: [Operation] {
        let list: PathTemplate = "/v1/transfers"
        let one = PathTemplate("\(list)/{id}", .init("The transfer's id.", example: "3"))
        return [
            Operation("listTransfers", .get, list, .read, Self.listDocument) { try self.list($0) },
            Operation(
                "createTransfer", .post, list, .operate,
                OperationDocument(
                    "Creates an HTTP transfer", body: [.json(TransferRequest.self)], isBodyRequired: true,
                    responses: [.init(201, "The new transfer", .json(Transfer.self), headers: .location)],
                    problems: [404, 409, 410]), bodyLimit: Self.requestLimit
            ) { try await self.create($0) },
            Operation("getTransfer", .get, one, .read, Self.document("Gets a transfer, with its progress and metrics"))
            {
                self.transferResponse(try self.find($0))
            },
            Operation(
                "changeTransfer", .patch, one, .operate,
                Self.document("Changes description, priority and labels", body: ConnectionPatch.self)
            ) { try await self.change($0) },
            Operation(
                "forgetTransfer", .delete, one, .operate,
                OperationDocument(
                    "Removes a transfer; cancels it if it is running", responses: [.init(204, "Removed")],
                    problems: [404, 409])
            ) { try self.forget($0) },
        ] + self.verbs(one) + self.contents(one)
    }

    private static let listDocument = OperationDocument(
        "Lists transfers page by page",
        parameters: [
            "limit": .integer(1...Self.maximumLimit, "Transfers per page.", example: 100),
            "kind": .choice(
                TransferPlan.Kind.allCases.map(\.rawValue), "The kind of transfer.", example: "download"),
            "state": .text("States, separated by commas.", example: "running,saving"), "label": .label,
            "cursor": .cursor,
        ],
        responses: [.init(200, "A page", .json(TransferPage.self), headers: .nextPage)], problems: [410])

    private func verbs(_ one: PathTemplate) -> [Operation] {
        func verb(
            _ name: String, _ summary: String, body: OperationDocument.Model? = nil,
            _ handler: @escaping Operation.Handler
        ) -> Operation {
            let document = Self.document(summary, body: body)
            return Operation("\(name)Transfer", .post, one + ":\(name)", .operate, document, handler)
        }
        return [
            verb("suspend", "Suspends a transfer until it is resumed") { try await self.suspend($0) },
            verb("resume", "Resumes a transfer") { try await self.resume($0) },
            verb(
                "cancel", "Cancels a transfer; can keep the data received, for a restart", body: TransferCancel.self
            ) { try await self.cancel($0) },
            verb(
                "restart", "Restarts a transfer, from the data received if the server supports that",
                body: TransferRestart.self
            ) { try await self.restart($0) },
        ]
    }

    private func contents(_ one: PathTemplate) -> [Operation] {
        [
            // Unlimited, as the body is streamed.
            Operation(
                "sendTransferBody", .put, one + "/body", .operate,
                OperationDocument(
                    "Sends the body of a streamed transfer", body: [.bytes("application/octet-stream")],
                    isBodyRequired: true,
                    responses: [
                        .init(200, "The ended transfer", .json(Transfer.self)),
                        .init(202, "The running transfer", .json(Transfer.self)),
                    ], problems: [404, 409, 410, 502, 504]), bodyLimit: .max
            ) { try await self.sendBody($0) },
            Operation(
                "getTransferContent", .get, one + "/content", .operate,
                OperationDocument(
                    "Gets the received content, or a range of it", headers: ["Range": "RFC 9110 §14.2."],
                    responses: [.init(200, "All content", .bytes("*/*")), .init(206, "The range", .bytes("*/*"))],
                    problems: [404, 409, 410, 416])
            ) { try await self.content($0) },
        ]
    }

    private static func document(_ summary: String, body: OperationDocument.Model? = nil) -> OperationDocument {
        OperationDocument(
            summary, body: body.map { [OperationDocument.Content.json($0)] } ?? [],
            responses: [
                .init(200, "The current state", .json(Transfer.self)), .init(202, "Cancelling", .json(Transfer.self)),
            ], problems: [404, 409, 410])
    }

    // MARK: Reading

    private func find(_ call: ControlCall) throws(ControlProblem) -> RunningTransfer {
        let name = call.parameters["id"] ?? ""
        guard let transfer = self.registry.find(name) else {
            throw ControlProblem(
                404, "unknown-transfer", "There is no transfer \(name.prefix(64)).")
        }
        return transfer
    }

    private func transferResponse(
        _ transfer: RunningTransfer, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) -> Response {
        .json(transfer.snapshot(self.context.anchor), status: status, headers: headers)
    }

    private func list(_ call: ControlCall) throws(ControlProblem) -> Response {
        let limit = try call.query.integer("limit", in: 1...Self.maximumLimit) ?? Self.defaultLimit
        let start = try call.query.integer("cursor", in: 0...Int.max) ?? 0
        let states = try Self.choices(call.query, "state", of: TransferStage.self)
        let kinds = try Self.choices(call.query, "kind", of: TransferPlan.Kind.self)
        let labels = try call.query.labels("label")
        let found = self.registry.all.filter { $0.number > UInt64(start) }.map { $0.snapshot(self.context.anchor) }
            .filter { transfer in
                states.selects(transfer.state) && kinds.selects(transfer.kind)
                    && labels.allSatisfy { $0.matches(transfer.labels ?? [:]) }
            }
        let items = Array(found.prefix(limit))
        let next =
            found.count > limit ? items.last.map { call.query.nextPage(of: "/v1/transfers", cursor: $0.id) } : nil
        return .json(
            TransferPage { ($0.items, $0.next) = (items, next) },
            headers: next.map { [.link: "<\($0)>; rel=\"next\""] } ?? [:])
    }

    private static func choices<Choice: CaseIterable & RawRepresentable<String>>(
        _ query: Query, _ name: String, of type: Choice.Type
    ) throws(ControlProblem) -> Set<String> {
        let known = type.allCases.map(\.rawValue).joined(separator: ", ")
        return try query.set(name, expecting: "one of \(known)") { Choice(rawValue: $0)?.rawValue }
    }

    // MARK: Creating and forgetting

    private func create(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let settings = await self.context.configuration.snapshot.configuration.control.transfers
        let request = try await call.decode(TransferRequest.self)
        let plan = try TransferRequestParser(
            request: request, settings: settings, targets: self.registry.targets,
            hasBackground: self.registry.background != nil
        ).parse()
        let transfer = try self.registry.add(plan, settings: settings)
        if plan.startsImmediately, !plan.isStreamed {
            do {
                try await Self.onThread { try transfer.begin() }
            } catch {
                self.registry.remove(transfer)
                throw error
            }
        }
        if let seconds = call.waitPreference() { await Self.waitForEnd(of: transfer, within: .seconds(seconds)) }
        return self.transferResponse(
            transfer, status: .created, headers: [.location: "/v1/transfers/\(transfer.number)"])
    }

    private func change(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        let patch = try await call.decode(ConnectionPatch.self)
        transfer.change(
            description: patch.description,
            priority: patch.priority.map { Float($0) },
            labels: try patch.labels.map { (labels) throws(ControlProblem) in try OpenRequestParser.labels(labels) })
        return self.transferResponse(transfer)
    }

    private func forget(_ call: ControlCall) throws(ControlProblem) -> Response {
        self.registry.remove(try self.find(call))
        return .noContent
    }

    // MARK: Control

    private func conflict(_ transfer: RunningTransfer, _ requirement: String) -> ControlProblem {
        ControlProblem(
            409, "state-conflict", "The transfer is \(transfer.stage.rawValue); only \(requirement).")
    }

    /// Files are copied for the daemon, and its journal waits for the disk.
    private static func onThread(_ work: @escaping @Sendable () throws -> Void) async throws {
        try await NIOThreadPool.singleton.runIfActive(work)
    }

    private func suspend(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        try await Self.onThread { _ = transfer.suspend() }
        guard [.suspended, .running].contains(transfer.stage) else {
            throw self.conflict(transfer, "a running transfer can be suspended")
        }
        return self.transferResponse(transfer)
    }

    private func resume(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        guard [.suspended, .running].contains(transfer.stage) else {
            throw self.conflict(transfer, "a suspended transfer can be resumed; restart one that has ended")
        }
        try await Self.onThread { try transfer.resume() }
        return self.transferResponse(transfer)
    }

    /// Responds when the transfer is cancelled, or with 202 if that takes longer than the client waits.
    private func cancel(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        let request = try await call.decode(TransferCancel.self)
        guard !transfer.stage.isOver, transfer.stage != .saving else {
            throw self.conflict(transfer, "a transfer that has not ended can be cancelled")
        }
        transfer.cancel(keepsResumeData: request.keepResumeData ?? true)
        let isOver = await Self.waitForEnd(of: transfer, within: .seconds(call.waitPreference() ?? 5))
        return self.transferResponse(transfer, status: isOver ? .ok : .accepted)
    }

    private func restart(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let transfer = try self.find(call)
        let request = try await call.decode(TransferRestart.self)
        guard transfer.stage.isOver else {
            throw self.conflict(transfer, "a transfer that has ended can be restarted")
        }
        guard !transfer.plan.isBodyGone else {
            throw ControlProblem(409, "body-gone", "The body is no longer available; create another transfer.")
        }
        let data = request.fromBeginning == true ? nil : transfer.resumeData
        guard data != nil || request.fromBeginning == true else {
            throw ControlProblem(
                409, "no-resume-data",
                "There is no resume data; {\"fromBeginning\": true} restarts from the beginning.")
        }
        try self.registry.checkCapacity(await self.context.configuration.snapshot.configuration.control.transfers)
        try await Self.onThread { try transfer.begin(resuming: data) }
        return self.transferResponse(transfer)
    }

    @discardableResult
    private static func waitForEnd(of transfer: RunningTransfer, within limit: Duration) async -> Bool {
        await Waiting.poll(within: limit) { transfer.stage.isOver }
    }

    // MARK: Content

    /// Streams the request's body to a streamed transfer, at the speed of its server.
    private func sendBody(_ call: ControlCall) async throws -> Response {
        try self.context.checkNotDraining()
        let transfer = try self.find(call)
        guard transfer.plan.isStreamed else {
            throw ControlProblem(409, "state-conflict", "The transfer is not streamed.")
        }
        let pipe = BodyPipe()
        let length = call.request.headers[.contentLength].flatMap { Int64($0) }
        guard try transfer.begin(streaming: pipe, bodyLength: length) else {
            throw ControlProblem(409, "state-conflict", "The body was sent already.")
        }
        do {
            for try await buffer in call.request.body {
                guard await pipe.write(buffer) else { break }
            }
            pipe.finish()
        } catch {
            // The client disconnected before the end of the body.
            pipe.fail()
            throw error
        }
        await Self.waitForEnd(of: transfer, within: .seconds(call.waitPreference() ?? 5))
        return self.transferResponse(transfer, status: transfer.stage.isOver ? .ok : .accepted)
    }

    /// The received content, from memory or from the destination file. Its own media type is not used, so that no
    /// browser executes it.
    private func content(_ call: ControlCall) async throws -> Response {
        let transfer = try self.find(call)
        let (stage, content) = transfer.content
        guard stage == .finished else {
            let problem = ControlProblem(
                409, "state-conflict",
                "The transfer is \(stage.rawValue); its content is available once it is finished.")
            throw stage.isOver ? problem : problem.retryable(after: 1)
        }
        guard let destination = transfer.plan.destination else {
            let range = try ContentRange(call.request.headers[.range], length: Int64(content.count))
            let bytes = content[Int(range.start)..<Int(range.end)]
            return Response(
                status: range.status, headers: range.headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
        do {
            let file = try destination.openForReading()
            let range = try ContentRange(call.request.headers[.range], length: try file.length())
            return Response(status: range.status, headers: range.headers, body: Self.body(file, range))
        } catch let error as FileError {
            throw ControlProblem(error, ofContent: destination.path)
        }
    }

    private static func body(_ file: OpenFile, _ range: ContentRange) -> ResponseBody {
        ResponseBody(contentLength: Int(range.end - range.start)) { writer in
            var offset = range.start
            while offset < range.end {
                let (start, count) = (offset, Int(min(Int64(Self.chunkSize), range.end - offset)))
                let bytes = try await NIOThreadPool.singleton.runIfActive { try file.read(count, at: start) }
                guard !bytes.isEmpty else { throw FileError(EIO) }
                try await writer.write(ByteBuffer(bytes: bytes))
                offset += Int64(bytes.count)
            }
            try await writer.finish(nil)
        }
    }
}

/// The requested part of some content (RFC 9110 §14.2): one range, or all of it.
package struct ContentRange: Sendable, Equatable {
    package let start: Int64
    /// Exclusive.
    package let end: Int64
    private let length: Int64
    private let isPartial: Bool

    /// - Parameter field: the value of `Range`; ignored if it has several ranges or another unit.
    /// - Throws: `ControlProblem` 416 for an empty range.
    package init(_ field: String?, length: Int64) throws(ControlProblem) {
        self.length = length
        switch ByteRanges(field.map { [$0] } ?? [], size: length) {
        case .parts(let parts) where parts.count == 1:
            (self.start, self.end, self.isPartial) = (parts[0].lowerBound, parts[0].upperBound, true)
        case .whole, .parts: (self.start, self.end, self.isPartial) = (0, length, false)
        case .unsatisfiable:
            throw ControlProblem(416, "range-not-satisfiable", "The content has \(length) bytes.")
                .with { $0.contentLength = length }
        }
    }

    package var status: HTTPResponse.Status { self.isPartial ? .partialContent : .ok }

    package var headers: HTTPFields {
        var headers: HTTPFields = [
            .contentType: "application/octet-stream", .cacheControl: "no-store", .acceptRanges: "bytes",
            .contentDisposition: "attachment", .xContentTypeOptions: "nosniff",
        ]
        if self.isPartial { headers[.contentRange] = "bytes \(self.start)-\(self.end - 1)/\(self.length)" }
        return headers
    }
}
