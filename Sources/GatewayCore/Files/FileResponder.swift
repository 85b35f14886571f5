import GatewayConfiguration
import HTTPSemantics
import StreamTransport
import WireText

/// Answers requests with the files of a directory.
///
/// The directory is opened for each request: one that was replaced, or a link that leads elsewhere now, is followed.
final class FileResponder: HTTPResponder {
    private static let indexFile = "index.html"

    private let settings: FileSettings
    /// Fields of responses that the route sets.
    private let routeFields: [FieldLine]

    init(_ settings: FileSettings) {
        self.settings = settings
        self.routeFields =
            [FieldLine("Cache-Control", settings.cacheControl)] + settings.headers.map { FieldLine($0.name, $0.value) }
    }

    let methods = ["GET", "HEAD"]
    let bodyLimit = 0

    /// A file to send.
    private struct Found {
        let file: OpenFile
        let type: MediaType
        var coding: FileCoding?
    }

    func respond(to request: PlainRequest, _ exchange: PlainExchange) {
        let rest = request.fileReference
        guard let name = FileName(encoded: rest) else { return self.refuse(.noSuchFile, exchange) }
        do throws(SystemError) {
            let folder = try OpenFolder(self.settings.directory)
            guard name.isFolder else {
                let file = try folder.open(name.path)
                if file.kind == .folder { return self.redirect(request, exchange) }
                return self.send(try self.variant(of: file, name.path, in: folder, request), request, exchange)
            }
            // The route's own path, where it is followed by `{name...}`.
            if rest != nil, FileName.redirect(request.head.target) != nil { return self.redirect(request, exchange) }
            try self.sendFolder(name, folder, request, exchange)
        } catch {
            self.refuse(error, exchange)
        }
    }

    private func sendFolder(
        _ name: FileName, _ folder: OpenFolder, _ request: PlainRequest, _ exchange: PlainExchange
    ) throws(SystemError) {
        let index = name.appending(Self.indexFile)
        do throws(SystemError) {
            let file = try folder.open(index)
            return self.send(try self.variant(of: file, index, in: folder, request), request, exchange)
        } catch {
            guard error == .noSuchFile, self.settings.lists else { throw error }
        }
        let (entries, isWhole) = try folder.open(name.path).entries()
        let listing = DirectoryListing(name, entries, isWhole: isWhole)
        exchange.respond(200, listing.fields + self.routeFields, body: Array(listing.text.utf8))
    }

    /// The compressed copy that the client prefers, if there is one that is not older, or the file itself.
    private func variant(
        of file: OpenFile, _ path: String, in folder: OpenFolder, _ request: PlainRequest
    ) throws(SystemError) -> Found {
        let type = MediaType(ofFile: path)
        guard file.kind == .regular else { throw .noSuchFile }
        guard type.isCompressible else { return Found(file: file, type: type) }
        for coding in FileCoding.accepted(request.head.fields) {
            do throws(SystemError) {
                let copy = try folder.open(path + coding.suffix)
                guard copy.kind == .regular, Self.isCurrent(copy, of: file) else { continue }
                return Found(file: copy, type: type, coding: coding)
            } catch {
                if error.isExhaustion { throw error }
            }
        }
        return Found(file: file, type: type)
    }

    /// Whether a compressed copy is not older than the file. Compressors give it the file's time, but some of them, such as
    /// `brotli` and `pigz`, without the fraction of the second.
    private static func isCurrent(_ copy: OpenFile, of file: OpenFile) -> Bool {
        let second: Int64 = 1_000_000_000
        return copy.modified >= file.modified || copy.modified == file.modified.floorDivided(by: second) * second
    }

    // MARK: Responses

    private func send(_ found: Found, _ request: PlainRequest, _ exchange: PlainExchange) {
        let fields = request.head.fields
        let (file, now) = (found.file, HTTPDate(seconds: Machine.wallClockMilliseconds() / 1000))
        let validators = FileValidators(inode: file.inode, size: file.size, modified: file.modified)
        // Never later than the response itself: RFC 9110 §8.8.2.1.
        let lastModified = min(validators.lastModified, now)
        var common = [FieldLine("ETag", validators.entityTag), FieldLine("Last-Modified", lastModified.formatted)]
        common += self.routeFields
        if found.type.isCompressible { common.append(FieldLine("Vary", "Accept-Encoding")) }
        switch validators.evaluate(fields, now: now) {
        case .notModified:
            _ = exchange.begin(304, common, .none)
            return
        case .preconditionFailed: return exchange.respond(412, common, text: "The file has another version.")
        case .proceed: break
        }
        common += [
            FieldLine("Accept-Ranges", "bytes"), FieldLine("X-Content-Type-Options", "nosniff"),
        ]
        if let coding = found.coding { common.append(FieldLine("Content-Encoding", coding.rawValue)) }
        let hasRange = request.head.method == "GET" && validators.allowRange(fields, now: now)
        switch hasRange ? ByteRanges(fields.values("Range"), size: file.size) : .whole {
        case .whole: self.send(FilePlan(whole: file, found.type), 200, common, exchange)
        case .parts(let parts): self.send(FilePlan(parts, of: file, found.type), 206, common, exchange)
        case .unsatisfiable:
            let size = FieldLine("Content-Range", "bytes */\(file.size)")
            exchange.respond(416, [size], text: "The range lies beyond the end of the file.")
        }
    }

    private func send(_ plan: FilePlan, _ status: Int, _ fields: [FieldLine], _ exchange: PlainExchange) {
        let transmission = FileTransmission(plan, exchange)
        guard exchange.begin(status, fields + plan.fields, .bytes(plan.count), source: transmission) else { return }
        transmission.advance()
    }

    private func redirect(_ request: PlainRequest, _ exchange: PlainExchange) {
        let location = FieldLine("Location", FileName.redirect(request.head.target) ?? "./")
        exchange.respond(301, [location] + self.routeFields, text: "The directory's URL ends with a slash.")
    }

    private func refuse(_ error: SystemError, _ exchange: PlainExchange) {
        switch error {
        case .noSuchFile, .notDirectory, .tooManyLinks, .leadsOut, .nameTooLong, .noSuchDevice:
            exchange.respond(404, text: "There is no such file.")
        case .accessDenied: exchange.respond(403, text: "The gateway may not read this file.")
        case _ where error.isExhaustion:
            let retry = FieldLine("Retry-After", "5")
            exchange.respond(503, [retry], text: "The server has no descriptors left; try again later.")
        default: exchange.respond(500, text: "The file cannot be read.")
        }
    }
}

extension PlainRequest {
    /// The part of the path that the route's `{name...}` matches, percent-encoded; `nil` without one.
    fileprivate var fileReference: String? {
        guard case .rest(let name)? = self.route.configuration.path?.segments.last else { return nil }
        return self.match.parameters.first { $0.name == name }?.encoded
    }
}

/// What a response with a file consists of.
struct FilePlan {
    enum Part {
        case text([UInt8])
        case bytes(Range<Int64>)
    }

    let file: OpenFile
    let parts: [Part]
    /// Length of the body.
    let count: Int64
    let fields: [FieldLine]

    init(whole file: OpenFile, _ type: MediaType) {
        self.file = file
        self.parts = [.bytes(0..<max(0, file.size))]
        self.count = max(0, file.size)
        self.fields = [FieldLine("Content-Type", type.value)]
    }

    /// - Parameter ranges: one, or several as multipart/byteranges (RFC 9110 §14.6).
    init(_ ranges: [Range<Int64>], of file: OpenFile, _ type: MediaType) {
        self.file = file
        func position(_ range: Range<Int64>) -> String {
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.size)"
        }
        guard ranges.count > 1 else {
            self.parts = ranges.map { .bytes($0) }
            self.count = ranges.reduce(0) { $0 + Int64($1.count) }
            self.fields =
                [FieldLine("Content-Type", type.value)] + ranges.map { FieldLine("Content-Range", position($0)) }
            return
        }
        // No file that was made before can contain it.
        let boundary = Machine.randomWords(2).map { String($0, radix: 36) }.joined()
        var parts: [Part] = []
        for range in ranges {
            let head = "\r\n--\(boundary)\r\nContent-Type: \(type.value)\r\nContent-Range: \(position(range))\r\n\r\n"
            parts += [.text(Array(head.utf8)), .bytes(range)]
        }
        parts.append(.text(Array("\r\n--\(boundary)--\r\n".utf8)))
        self.parts = parts
        self.count = parts.reduce(0) { sum, part in
            switch part {
            case .text(let bytes): sum + Int64(bytes.count)
            case .bytes(let range): sum + Int64(range.count)
            }
        }
        self.fields = [FieldLine("Content-Type", "multipart/byteranges; boundary=\(boundary)")]
    }
}
