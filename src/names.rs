//! Enums whose variants have names for users.

/// Defines an enum with the name of each variant beside it, and the function that returns it:
/// documented and named first, it stands in front of the enum.
macro_rules! named {
    (
        $(#[$returned:meta])* $name:ident;
        $(#[$about:meta])* pub enum $Enum:ident { $($(#[$what:meta])* $Variant:ident = $text:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $Enum {
            $($(#[$what])* $Variant,)+
        }

        impl $Enum {
            $(#[$returned])*
            pub const fn $name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $text,)+
                }
            }
        }
    };
}
pub(crate) use named;

/// Writes values of a type by their names, padded as the format asks for.
macro_rules! written_by_name {
    ($Type:ty) => {
        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use written_by_name;
