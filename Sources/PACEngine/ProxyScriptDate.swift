/// `Date` for PAC scripts, in JavaScript, without the time functions of the C library: these lock the process's time zone,
/// and a script that is stopped within one would leave it locked for good.
enum ProxyScriptDate {
    /// An expression: a function that sets the seconds of the time zone east of UTC, which apply to all dates. It replaces
    /// the global `Date`, and every method that Duktape implements by such a function. `Date.parse` knows ISO 8601, RFC
    /// 9110 §5.6.7 and what `toString` gives.
    static let text = #"""
        (function (global) {
            // Nothing else refers to it, and it is only called with a number.
            var Native = global.Date;
            var prototype = Native.prototype, utc = Native.UTC, getTime = prototype.getTime, setTime = prototype.setTime;
            var offset = 0, names = "Sun Mon Tue Wed Thu Fri Sat Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
            function local(date) { return new Native(+getTime.call(date) + offset); }
            function pad(value, length) {
                var text = String(Math.abs(value));
                while (text.length < length) text = "0" + text;
                return (value < 0 ? "-" : "") + text;
            }
            function zone() {
                var minutes = Math.abs(offset) / 60000;
                return "GMT" + (offset < 0 ? "-" : "+") + pad(Math.floor(minutes / 60), 2) + pad(minutes % 60, 2);
            }
            function dayText(date) {
                return names[date.getUTCDay()] + " " + names[7 + date.getUTCMonth()] + " " + pad(date.getUTCDate(), 2)
                    + " " + pad(date.getUTCFullYear(), 4);
            }
            function isoText(date) {
                return pad(date.getUTCFullYear(), 4) + "-" + pad(date.getUTCMonth() + 1, 2) + "-" + pad(date.getUTCDate(), 2);
            }
            function timeText(date) {
                return pad(date.getUTCHours(), 2) + ":" + pad(date.getUTCMinutes(), 2) + ":" + pad(date.getUTCSeconds(), 2);
            }
            function time(year, month, day, hour, minute, second, milliseconds, east) {
                if (month < 0 || month > 11 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 59) return NaN;
                return utc(year, month, day, hour, minute, second, milliseconds) - east;
            }
            function eastOf(text, otherwise) {
                if (!text) return otherwise;
                if (!/\d/.test(text)) return 0;
                var digits = text.replace(":", "");
                return (digits.charAt(0) === "-" ? -1 : 1) * (+digits.substring(1, 3) * 60 + +digits.substring(3)) * 60000;
            }
            var iso = /^([+-]\d{6}|\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(Z|[+-]\d\d:?\d\d)?$/i;
            var dayFirst = /^(?:[a-z]+,?\s+)?(\d{1,2})[\s-]+([a-z]+)[\s-]+(\d{4})(.*)$/i;
            var monthFirst = /^(?:[a-z]+,?\s+)?([a-z]+)\s+(\d{1,2}),?\s+(\d{4})(.*)$/i;
            var rest = /^(?:,?\s+(\d{1,2}):(\d\d)(?::(\d\d))?)?\s*(?:GMT|UTC|UT|Z)?([+-]\d\d:?\d\d)?\s*(?:\(.*\))?$/i;
            function parse(text) {
                var found = iso.exec(text);
                if (found) {
                    // Without a time it is UTC (ECMA-262 §21.4.1.32).
                    return time(
                        +found[1], (found[2] || 1) - 1, +(found[3] || 1), +(found[4] || 0), +(found[5] || 0), +(found[6] || 0),
                        Math.floor(+("0." + (found[7] || 0)) * 1000), eastOf(found[8], found[4] ? offset : 0));
                }
                text = String(text).replace(/^\s+|\s+$/g, "");
                var first = dayFirst.exec(text), second = first ? null : monthFirst.exec(text);
                var date = first ? [first[3], first[2], first[1], first[4]]
                    : second ? [second[3], second[1], second[2], second[4]] : null;
                var more = date && rest.exec(date[3]);
                if (!more) return NaN;
                var name = date[1].substring(0, 3).toLowerCase(), month = -1;
                for (var i = 0; i < 12; i++) if (names[7 + i].toLowerCase() === name) month = i;
                var isZoned = /GMT|UT|Z/i.test(date[3]);
                return time(
                    +date[0], month, +date[2], +(more[1] || 0), +(more[2] || 0), +(more[3] || 0), 0,
                    eastOf(more[4], isZoned ? 0 : offset));
            }
            function valueOf(value) {
                if (value instanceof LocalDate) return +getTime.call(value);
                if (Object(value) === value) {
                    var object = value;
                    value = object.valueOf();
                    if (Object(value) === value) value = String(object);
                }
                return typeof value === "string" ? +parse(value) : +value;
            }
            var LocalDate = function Date(year, month, day, hours, minutes, seconds, milliseconds) {
                var value = arguments.length === 0 ? Native.now()
                    : arguments.length === 1 ? valueOf(year) : utc.apply(undefined, arguments) - offset;
                var date = new Native(+value);
                return new.target === undefined ? new Native(Native.now()).toString() : date;
            };
            function define(object, name, value) {
                Object.defineProperty(object, name, { value: value, writable: true, enumerable: false, configurable: true });
            }
            var kept = {
                constructor: 1, getTime: 1, setTime: 1, valueOf: 1, toISOString: 1, toJSON: 1, toUTCString: 1, toGMTString: 1
            };
            Object.getOwnPropertyNames(prototype).forEach(function (name) {
                var part = /^([gs]et)(Date|Day|FullYear|Hours|Milliseconds|Minutes|Month|Seconds)$/.exec(name);
                if (part && part[1] === "get") {
                    define(prototype, name, function () { return local(this)["getUTC" + part[2]](); });
                } else if (part) {
                    define(prototype, name, function () {
                        var date = local(this);
                        date["setUTC" + part[2]].apply(date, arguments);
                        return setTime.call(this, getTime.call(date) - offset);
                    });
                } else if (!kept[name] && !/^[gs]etUTC/.test(name)) {
                    delete prototype[name];
                }
            });
            define(prototype, "constructor", LocalDate);
            define(prototype, "getYear", function () { return local(this).getUTCFullYear() - 1900; });
            define(prototype, "setYear", function (year) {
                year = +year;
                return this.setFullYear(year >= 0 && year <= 99 ? year + 1900 : year);
            });
            define(prototype, "getTimezoneOffset", function () {
                return isNaN(getTime.call(this)) ? NaN : -offset / 60000;
            });
            var texts = {
                toString: function (date) { return dayText(date) + " " + timeText(date) + " " + zone(); },
                toDateString: dayText, toTimeString: function (date) { return timeText(date) + " " + zone(); },
                toLocaleString: function (date) { return isoText(date) + " " + timeText(date); },
                toLocaleDateString: isoText, toLocaleTimeString: timeText
            };
            Object.keys(texts).forEach(function (name) {
                define(prototype, name, function () {
                    return isNaN(getTime.call(this)) ? "Invalid Date" : texts[name](local(this));
                });
            });
            define(LocalDate, "UTC", utc);
            define(LocalDate, "now", Native.now);
            define(LocalDate, "parse", function (text) { return parse(String(text)); });
            Object.defineProperty(LocalDate, "prototype", { value: prototype, writable: false });
            define(global, "Date", LocalDate);
            return function (seconds) { offset = seconds * 1000; };
        })(global)
        """#
}
