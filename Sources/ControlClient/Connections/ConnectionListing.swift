import ControlAPI

/// A list of connections, page by page.
package struct ConnectionListing: Sendable, Equatable {
    /// Most that one page has.
    package static let pageLimit = 1000

    package var selection: ConnectionSelection
    /// As the interface has it; `nil`: by id.
    package var sort: String?
    /// Names of members with commas between them; `nil`: all.
    package var fields: String?
    /// `nil`: all that there are.
    package var limit: Int?

    package init(
        _ selection: ConnectionSelection, sort: String? = nil, fields: String? = nil, limit: Int? = nil
    ) {
        self.selection = selection
        self.sort = sort
        self.fields = fields
        self.limit = limit
    }

    /// For at most `count` connections.
    package func request(count: Int) -> ControlRequest {
        var parameters = self.selection.parameters
        if let sort { parameters.append(ControlRequest.Parameter("sort", sort)) }
        if let fields { parameters.append(ControlRequest.Parameter("fields", fields)) }
        parameters.append(ControlRequest.Parameter("limit", "\(min(count, Self.pageLimit))"))
        return ControlRequest(.get, ConnectionPath.all, parameters)
    }

    package func pages(of session: ControlSession) -> Pages {
        Pages(session: session, next: self.request(count: self.limit ?? Self.pageLimit), rest: self.limit ?? .max)
    }

    /// Reads one page after the other.
    package struct Pages {
        let session: ControlSession
        var next: ControlRequest?
        var rest: Int

        /// - Returns: `nil` behind the last one.
        package mutating func next() async throws(ControlFailure) -> (ControlAnswer, ConnectionPage)? {
            guard let request = self.next, self.rest > 0 else { return nil }
            let answer = try await self.session.send(request)
            let page = try answer.decoded(ConnectionPage.self)
            self.rest -= page.items.count
            self.next = page.next.map { ControlRequest(.get, Self.bounded($0, count: self.rest)) }
            return (answer, page)
        }

        /// The way to the next page, with no more on it than is still wanted.
        package static func bounded(_ path: String, count: Int) -> String {
            guard let mark = path.firstIndex(of: "?") else { return path }
            let query = path[path.index(after: mark)...].split(separator: "&").map { piece in
                guard piece.hasPrefix("limit="), let limit = Int(piece.dropFirst(6)) else { return String(piece) }
                return "limit=\(min(limit, max(1, count)))"
            }
            return path[...mark] + query.joined(separator: "&")
        }
    }
}
