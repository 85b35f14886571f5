import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// What belongs to one request beside the request itself.
struct ControlRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The connection that it came by.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        self.coreContext = CoreRequestContextStorage(source: source)
        self.channel = source.channel
    }
}
