for (const holder of document.querySelectorAll(".chart")) {
  const spec = JSON.parse(document.getElementById(holder.dataset.spec).textContent);
  spec.width = "container";
  const live = document.createElement("div");
  live.style.width = "100%";
  holder.append(live);
  vegaEmbed(live, spec, { actions: false, renderer: "svg" }).then(
    () => { holder.firstElementChild.remove(); holder.dataset.live = "yes"; },
    (error) => { live.remove(); console.error(error); },
  );
}
