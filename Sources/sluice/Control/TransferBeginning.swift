import ControlAPI
import ControlClient

/// How `get` and `put` begin: with a transfer of their own, or with one that was begun before.
struct TransferBeginning {
    enum Plan {
        case begin(TransferRequest)
        /// By its id.
        case goOn(String)
    }

    let desk: ControlDesk
    /// Nothing of earlier attempts is to be used.
    let isFresh: Bool

    func begin(_ plan: Plan) async throws(ControlFailure) -> ControlAnswer {
        switch plan {
        case .goOn(let id): return try await self.goOn(id)
        case .begin(let request):
            if let one = try await self.earlier(request) {
                self.desk.note("goes on with transfer \(one.id); --fresh would begin anew")
                return try await self.restart(one.id, fromBeginning: false)
            }
            return try await self.desk.session.send(try ControlRequest(.post, TransferText.all, json: request))
        }
    }

    /// The last one that did the same and can be gone on with.
    private func earlier(_ request: TransferRequest) async throws(ControlFailure) -> Transfer? {
        guard let destination = request.destination, !self.isFresh else { return nil }
        var found: Transfer?
        var next: ControlRequest? = ControlRequest(
            .get, TransferText.all,
            [.init("kind", "download"), .init("state", "cancelled"), .init("state", "failed"), .init("limit", "1000")])
        while let asked = next {
            let page = try await self.desk.session.send(asked, for: TransferPage.self)
            for one in page.items
            where one.canResume && one.url == request.url && one.destination == destination && one.method == "GET" {
                found = one
            }
            next = page.next.map { ControlRequest(.get, $0) }
        }
        return found
    }

    private func goOn(_ id: String) async throws(ControlFailure) -> ControlAnswer {
        let answer = try await self.desk.session.send(ControlRequest(.get, TransferText.path(id)))
        let one = try answer.decoded(Transfer.self)
        switch one.state {
        case "waiting":
            throw ControlFailure(
                .conflict, "transfer \(id) waits for its body, which another command brings",
                remedy: "send the file with 'sluice put FILE URL'")
        case "suspended":
            return try await self.desk.session.send(ControlRequest(.post, TransferText.path(id) + ":resume"))
        case "cancelled", "failed":
            // A body is sent from its beginning.
            let isUpload = one.kind == "upload"
            guard one.canResume || self.isFresh || isUpload else {
                throw ControlFailure(
                    .conflict, "nothing of transfer \(id) was kept that could be gone on with",
                    remedy: "--fresh beside --resume begins it anew")
            }
            return try await self.restart(id, fromBeginning: self.isFresh || isUpload)
        case "finished" where self.isFresh: return try await self.restart(id, fromBeginning: true)
        default: return answer
        }
    }

    private func restart(_ id: String, fromBeginning: Bool) async throws(ControlFailure) -> ControlAnswer {
        let body = TransferRestart(fromBeginning: fromBeginning ? true : nil)
        return try await self.desk.session.send(
            try ControlRequest(.post, TransferText.path(id) + ":restart", json: body))
    }
}
