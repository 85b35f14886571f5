import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload
import Synchronization

/// SwiftNIO's server for resumable uploads, whose connections end after some bytes.
final class ResumableServer: Sendable {
    let port: Int
    fileprivate let log: UploadLog
    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel

    /// - Parameters:
    ///   - cuts: after how many received bytes each connection is closed; later ones are not.
    ///   - stalls: instead of closing, the connection takes nothing more.
    init(cuts: [Int], stalls: Bool = false) async throws {
        let log = UploadLog(cuts: cuts, stalls: stalls)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        // Without an origin the location of the upload resource is a path.
        let context = HTTPResumableUploadContext(origin: "")
        self.log = log
        self.group = group
        self.channel = try await ServerBootstrap(group: group).childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHandler(CuttingHandler(log))
                try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false)
                try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
                try pipeline.addHandler(HTTPResumableUploadHandler(context: context, handlers: [TargetHandler(log)]))
            }
        }.bind(host: "127.0.0.1", port: 0).get()
        self.port = self.channel.localAddress?.port ?? 0
    }

    func stop() async throws {
        try await self.channel.close()
        try await self.group.shutdownGracefully()
    }

    /// The content of the latest upload that reached its target as a whole.
    var content: [UInt8] { self.log.state.withLock { $0.content } }
    var connections: Int { self.log.state.withLock { $0.connections } }
}

private final class UploadLog: Sendable {
    struct State {
        var cuts: ArraySlice<Int>
        var content: [UInt8] = []
        var connections = 0
    }

    let state: Mutex<State>
    let stalls: Bool

    init(cuts: [Int], stalls: Bool) {
        self.state = Mutex(State(cuts: cuts[...]))
        self.stalls = stalls
    }
}

/// Ends its connection after some bytes.
private final class CuttingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let log: UploadLog
    private var budget = Int.max

    init(_ log: UploadLog) { self.log = log }

    func channelActive(context: ChannelHandlerContext) {
        self.budget = self.log.state.withLock { state in
            state.connections += 1
            return state.cuts.popFirst() ?? .max
        }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        guard self.budget > 0 else { return }
        guard let piece = bytes.readSlice(length: min(bytes.readableBytes, self.budget)) else { return }
        self.budget -= piece.readableBytes
        context.fireChannelRead(self.wrapInboundOut(piece))
        if self.budget == 0, !self.log.stalls { context.close(promise: nil) }
    }
}

/// The target of uploads: it sees one request, however many transferred it.
private final class TargetHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    private let log: UploadLog
    private var content: [UInt8] = []

    init(_ log: UploadLog) { self.log = log }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head: self.content = []
        case .body(let bytes): self.content += bytes.readableBytesView
        case .end:
            self.log.state.withLock { $0.content = self.content }
            let response = HTTPResponse(status: .created, headerFields: [.contentLength: "5"])
            context.write(self.wrapOutboundOut(.head(response)), promise: nil)
            context.write(self.wrapOutboundOut(.body(ByteBuffer(string: "taken"))), promise: nil)
            context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
