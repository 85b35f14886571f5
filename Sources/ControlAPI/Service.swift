/// GET /livez, /readyz and /startupz.
package struct ServiceHealth: ControlModel {
    @Member("`ok`, or the part that is not ready.") package var status = ""
    @Member(.words(["starting", "ready", "draining"])) package var phase = ""

    package init() {}
}

/// GET /version.
package struct ServiceVersion: ControlModel {
    @Member package var name = ""
    @Member package var version = ""
    @Member("Prefix of the paths of this API version.") package var api = ""

    package init() {}
}
